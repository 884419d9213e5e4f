// Keyboard shortcuts. Each does the same as a visible link, box or button, so the pages also work without this script.
"use strict";

const KEYS = [
  ["j", "next row"],
  ["k", "previous row"],
  ["Enter", "open the row"],
  ["x", "tick the row, or remove its tick"],
  ["e", "edit the message"],
  ["r", "release the ticked messages, or the message or group"],
  ["/", "search"],
  ["?", "show these shortcuts"],
];

const rows = () => [...document.querySelectorAll("#content tbody tr")].filter((row) => row.querySelector("a[href]"));
const current = () => document.activeElement.closest("#content tbody tr");

function step(by) {
  const all = rows();
  const row = all[Math.max(0, Math.min(all.length - 1, all.indexOf(current()) + by))];
  row?.querySelector("a[href]").focus();
  row?.scrollIntoView({ block: "nearest" });
}

// Clicks the first button or link whose label begins with `text`: in the current row or, if none is there, on the page.
function press(text) {
  for (const place of [current(), document.getElementById("content")]) {
    const found = [...(place?.querySelectorAll("a[href], button") ?? [])].find(
      (one) => one.textContent.trim().startsWith(text) && one.checkVisibility() && !one.disabled
    );
    if (found) {
      found.click();
      return;
    }
  }
}

function help() {
  let dialog = document.getElementById("keys");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "keys";
    dialog.setAttribute("aria-label", "Keys");
    const list = document.createElement("dl");
    for (const [key, meaning] of KEYS) {
      const [term, text, shown] = ["dt", "dd", "kbd"].map((name) => document.createElement(name));
      shown.textContent = key;
      term.append(shown);
      text.textContent = meaning;
      list.append(term, text);
    }
    const closing = document.createElement("form");
    closing.method = "dialog";
    const button = document.createElement("button");
    button.className = "button";
    button.textContent = "Close";
    closing.append(button);
    dialog.append(list, closing);
    document.body.append(dialog);
  }
  dialog.showModal();
}

const DOES = {
  j: () => step(1),
  k: () => step(-1),
  x: () => current()?.querySelector('input[type="checkbox"]')?.click(),
  e: () => press("Edit"),
  r: () => press("Release"),
  "/": () => document.querySelector('#content input[type="search"], #searchbar, input[type="search"]')?.focus(),
  "?": help,
};

document.addEventListener("keydown", (pressed) => {
  const typing = pressed.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable], dialog");
  if (typing || pressed.ctrlKey || pressed.metaKey || pressed.altKey || !Object.hasOwn(DOES, pressed.key)) {
    return;
  }
  pressed.preventDefault();
  DOES[pressed.key]();
});
