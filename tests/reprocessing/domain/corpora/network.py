"""URLs that try to reach into the network, and addresses that a listed host must not resolve to."""

# ruff: noqa: RUF001  # letters that look like others are what is tried here
from __future__ import annotations

#: URLs that parsers read differently, or that hide an address; good.example is listed.
URLS = [
    # addresses, as they are and in disguise
    "http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://0/", "http://0.0.0.0/", "http://2130706433/",
    "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0X7F.1/", "http://017700000001/", "http://0177.0.0.1/",
    "http://127.0.0.0x1/", "http://127.0.0.01/", "http://00000177.1/", "http://3232235521/", "http://4294967297/",
    "http://127.0.0.1./", "http://１２７.０.０.１/", "http://127。0。0。1/", "http://①②⑦.⓪.⓪.①/", "http://١٢٧.٠.٠.١/",
    "http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/", "http://169.254.43518/", "http://1.2.3.4.5/", "http://256.256.256.256/",
    "http://10.0.0.1/", "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:a9fe:a9fe]/", "http://[::127.0.0.1]/", "http://[64:ff9b::169.254.169.254]/",
    "http://[2002:7f00:1::]/", "http://[2001:0:7f00:1::]/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/",
    "http://[fd00:ec2::254]/", "http://[::1", "http://::1/", "http://[good.example]/",
    # names
    "http://localhost/", "http://localhost./", "http://LOCALHOST/", "http://metadata.google.internal/",
    "http://127.0.0.1.nip.io/", "http://good.example.evil.example/", "http://evil.example/good.example",
    "http://sub.good.example/", "http://example/", "http://good.example../", "http://.good.example/",
    "http://good..example/", "http://good%2eexample/", "http://g%6fod.example/", "http://good.exam\u00adple.evil/",
    "http://good\u200d.example/", "http://faß.example/", "http://" + "a" * 64 + ".example/",
    "http://" + "a." * 200 + "example/", "http://" + "a" * 100_000 + "/", "http://" + "\u0391" * 250 + "/",
    "http://good.example/" + "x" * 2_000,
    # one host hides behind another
    "http://good.example@127.0.0.1/", "http://good.example:80@127.0.0.1/", "http://user:secret@good.example/",
    "http://@good.example/", "http://127.0.0.1#@good.example/", "http://good.example#@127.0.0.1/",
    "http://127.0.0.1\\@good.example/", "http://good.example\\@127.0.0.1/", "http://good.example\\.evil.example/",
    "http:\\\\good.example/", "http:/good.example/", "http:good.example", "//good.example/", "good.example",
    "http://good.example＠127.0.0.1/", "http://127.0.0.1／good.example/", "http://127.0.0.1？good.example/",
    "http://good.example：80/", "http://good.example\u2100/", "http://good.example;evil.example/",
    "http://good.example,127.0.0.1/", "http://good.example&@127.0.0.1/",
    # requests that would be forged
    "http://good.example/\r\nX-Forged: yes", "http://good.example/\nHost: evil", "http://good.example\r\n.evil/",
    "http://good.example/ HTTP/1.1", "http://good.example/\t", "http://good.example/\x00", " http://good.example/",
    "http://good.example/ ", "http://good.example/ü", "http://good.example/#top",
    # ports and schemes
    "http://good.example:22/", "http://good.example:6379/", "http://good.example:0/", "http://good.example:65616/",
    "http://good.example:-80/", "http://good.example:８０/", "http://good.example:80:80/", "http://good.example:/",
    "http://good.example:0x50/", "https://good.example:80/", "file:///etc/passwd", "ftp://good.example/",
    "gopher://good.example/", "dict://good.example:80/", "unix:///run/redis.sock", "httpſ://good.example/",
    "jar:http://good.example/!/", "http+unix://good.example/", "javascript:alert(1)", "", "http://", "http:///",
    "https://:443/",
]  # fmt: skip

#: Addresses to which the listed good.example must not resolve.
ADDRESSES = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1",
    "172.31.255.255", "192.168.0.1", "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200",
    "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:db8::1", "2001:10::1",
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%2",
    "fec0::1", "ff02::1", "ff0e::1", "not an address", "127.1", "",
]  # fmt: skip
