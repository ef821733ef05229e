// What is pleasant and not needed: forms without a new page, sliders that answer at once, a button that prints.
"use strict";
(() => {
  const say = (words) => { document.getElementById("say").textContent = words; };

  function take(html) {
    const page = new DOMParser().parseFromString(html, "text/html");
    const main = page.getElementById("main");
    if (!main) { return false; }
    document.title = page.title;
    document.getElementById("main").replaceWith(main);
    ready();
    const wrong = main.querySelector("[aria-invalid], .wrong");
    const first = main.querySelector("form[data-swap] input:not([type=hidden]):not([type=checkbox])");
    const goal = wrong ? main.querySelector("[aria-invalid]") || wrong : first || main.querySelector("[data-focus]");
    if (goal) { if (!goal.matches("input, [tabindex]")) { goal.tabIndex = -1; } goal.focus({ preventScroll: true }); }
    const head = main.querySelector("[data-focus]");
    const cost = main.querySelector(".cost");
    say([head, wrong && main.querySelector(".wrong"), cost].filter(Boolean).map((e) => e.textContent.trim()).join(", "));
    window.scrollTo(0, 0);
    return true;
  }

  async function send(form, button) {
    const fields = new URLSearchParams(new FormData(form));
    if (button && button.name) { fields.set(button.name, button.value); }
    form.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(form.action, { method: "POST", body: fields, credentials: "same-origin" });
      if (answer.redirected) { location.href = answer.url; return; }
      const html = (answer.headers.get("content-type") || "").startsWith("text/html");
      if (!html) { throw new Error(await answer.text()); }
      take(await answer.text());
    } catch (error) {
      form.removeAttribute("aria-busy");
      say("");
      let note = form.querySelector(".wrong");
      if (!note) { note = document.createElement("p"); note.className = "wrong"; note.setAttribute("role", "alert"); form.prepend(note); }
      note.textContent = "The service did not answer: " + String(error.message || error).slice(0, 200);
    }
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-swap]") || form.getAttribute("aria-busy")) { return; }
    event.preventDefault();
    send(form, event.submitter);
  });

  function slider(form) {
    const words = JSON.parse(form.dataset.words), marks = JSON.parse(form.dataset.marks);
    const at = form.querySelector("#at");
    at.addEventListener("input", () => {
      const here = words[at.value], [x, y] = marks[at.value];
      for (const name in here) {
        const shown = document.getElementById("here-" + name);
        if (shown) { shown.textContent = here[name]; }
      }
      at.setAttribute("aria-valuetext", here.budget);
      const mark = document.getElementById("mark"), drop = document.getElementById("drop");
      mark.setAttribute("cx", x); mark.setAttribute("cy", y);
      drop.setAttribute("x1", x); drop.setAttribute("x2", x); drop.setAttribute("y1", y);
    });
    at.addEventListener("change", async () => {
      const answer = await fetch(form.action + "?at=" + at.value, { credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const id of ["used", "ends", "taken"]) {
        const there = page.getElementById(id), here = document.getElementById(id);
        if (there && here) { here.replaceWith(there); }
      }
    });
  }

  function recalls(form) {
    const words = JSON.parse(form.dataset.words);
    const of = form.querySelector("#recall-of"), at = form.querySelector("#recall-at");
    const show = () => {
      at.max = words[of.value].length - 1;  // where a class ends; the browser moves the slider there
      const here = words[of.value][at.value];
      for (const name in here) { document.getElementById("recall-" + name).textContent = here[name]; }
      at.setAttribute("aria-valuetext", here.asked);
    };
    at.addEventListener("input", show);
    of.addEventListener("change", show);
  }

  function ready() {
    document.documentElement.classList.add("script");
    document.querySelectorAll("[data-print]").forEach((button) => {
      button.hidden = false;
      button.addEventListener("click", () => window.print());
    });
    const form = document.getElementById("budget-form");
    if (form) { slider(form); }
    const other = document.getElementById("recall-form");
    if (other) { recalls(other); }
  }
  ready();
})();
