// Page of a message: buttons that copy texts, search the tree of the body, open and close the whole tree, and copy the
// path of a value. Without this script, only these buttons are missing.
"use strict";

async function copied(text) {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // The browser does not allow this API: use execCommand below.
    }
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "copy-source";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

async function copyAndTell(button, text) {
  const label = button.dataset.label ?? button.textContent;
  button.dataset.label = label;
  button.textContent = (await copied(text)) ? "Copied" : "Copying failed";
  setTimeout(() => {
    button.textContent = label;
  }, 2000);
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copyAndTell(button, document.getElementById(button.dataset.copy).textContent));
}

// A line of the tree: the summary of an object or list, or the row of another value.
const lineOf = (node) => node.closest(".tree summary, .tree div");
const holderOf = (line) => (line.tagName === "SUMMARY" ? line.parentElement : line).parentElement.closest("details");

// The path of a line as a JMESPath expression, which rules and masked fields accept.
function pathOf(line) {
  const parts = [];
  for (let at = line; at; ) {
    const holder = holderOf(at);
    const name = at.querySelector("b");
    if (holder) {
      const text = name.dataset.name ? JSON.parse(name.dataset.name) : name.textContent;
      parts.unshift(holder.classList.contains("l") ? `[${text}]` : quoted(text));
    }
    at = holder?.querySelector(":scope > summary");
  }
  return parts.reduce((path, part) => path + (path && !part.startsWith("[") ? "." : "") + part, "") || "@";
}

const quoted = (name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : JSON.stringify(name));

function open(line) {
  for (let holder = holderOf(line); holder; holder = holder.parentElement.closest("details")) {
    holder.open = true;
  }
}

const tree = document.querySelector(".tree");
const tools = document.querySelector(".tree-tools");
if (tree && tools) {
  const part = (name) => tools.querySelector(`[data-tree="${name}"]`);
  const lines = [...tree.querySelectorAll("summary, div")];
  let selected = null;
  let hits = [];
  let current = -1;

  const select = (line) => {
    selected?.classList.remove("selected");
    selected = line;
    line.classList.add("selected");
    part("path").textContent = pathOf(line);
    part("copy").disabled = false;
  };

  const search = () => {
    const text = part("search").value.trim().toLowerCase();
    hits.forEach((line) => line.classList.remove("hit"));
    hits = text ? lines.filter((line) => textOf(line).includes(text)) : [];
    current = -1;
    for (const line of hits) {
      line.classList.add("hit");
      open(line);
    }
    part("found").textContent = text ? `${hits.length} found` : "";
    next();
  };
  const textOf = (line) => [...line.querySelectorAll("b, i")].map((one) => one.textContent).join(" ").toLowerCase();

  const next = () => {
    if (hits.length) {
      current = (current + 1) % hits.length;
      select(hits[current]);
      hits[current].scrollIntoView({ block: "nearest" });
    }
  };

  tools.hidden = false;
  part("search").addEventListener("input", search);
  part("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      next();
    }
  });
  for (const [name, isOpen] of [["expand", true], ["collapse", false]]) {
    part(name).addEventListener("click", () => {
      for (const one of tree.querySelectorAll("details details")) {
        one.open = isOpen;
      }
    });
  }
  part("copy").addEventListener("click", () => copyAndTell(part("copy"), pathOf(selected)));
  tree.addEventListener("click", (event) => {
    const line = lineOf(event.target);
    if (line) {
      select(line);
    }
  });
  // Arrow keys go from line to line, because the Tab key reaches only objects and lists.
  tree.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const shown = lines.filter((line) => line.offsetParent !== null);
      const at = shown.indexOf(selected);
      const line = shown[Math.min(Math.max(at + step, 0), shown.length - 1)];
      select(line);
      line.scrollIntoView({ block: "nearest" });
    } else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && selected?.tagName === "SUMMARY") {
      event.preventDefault();
      selected.parentElement.open = event.key === "ArrowRight";
    }
  });
}
