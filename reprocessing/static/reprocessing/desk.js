// A page that gets no answer says so, instead of showing old figures as if they were new.
"use strict";

for (const [event, stale] of [
  ["htmx:afterRequest", false],
  ["htmx:sendError", true],
  ["htmx:timeout", true],
  ["htmx:responseError", true],
]) {
  document.addEventListener(event, (happened) => {
    if (stale || happened.detail.successful) {
      document.documentElement.classList.toggle("stale", stale);
    }
  });
}
