"use strict";
(() => {
  const steps = () => document.querySelectorAll("details.step");
  const all = (id, open) => {
    const button = document.getElementById(id);
    if (button) button.addEventListener("click", () => steps().forEach((step) => { step.open = open; }));
  };
  all("open", true);
  all("close", false);
  const show = () => {
    const step = document.getElementById(location.hash.slice(1));
    if (step instanceof HTMLDetailsElement) {
      step.open = true;
      step.scrollIntoView();
    }
  };
  addEventListener("hashchange", show);
  addEventListener("beforeprint", () => steps().forEach((step) => { step.open = true; }));
  show();
})();
