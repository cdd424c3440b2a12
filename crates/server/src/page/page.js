"use strict";
// Hands the token or the code over once, asks for what there is to show, and keeps the bubbles of a session fresh. A cookie goes to every
// port of this host; the half that is kept here goes to this one only, so the page has to be asked for with it.
(async () => {
  const kept = "lathe-page";
  // Another token in the address bar of an open page.
  window.addEventListener("hashchange", () => location.reload());
  const given = new URLSearchParams(location.hash.slice(1));
  const name = ["token", "code"].find((name) => given.get(name));
  if (name) {
    history.replaceState(null, "", location.pathname + location.search);
    const answer = await fetch("/auth", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ [name]: given.get(name) }),
    });
    if (answer.ok) sessionStorage.setItem(kept, (await answer.json()).page);
  }
  const half = sessionStorage.getItem(kept);
  if (!half) return;

  // Puts what the server has to show into the page; false if it has nothing for us.
  async function show() {
    const answer = await fetch(location.pathname + location.search, { headers: { "x-lathe-page": half } });
    const text = await answer.text();
    const main = new DOMParser().parseFromString(text, "text/html").querySelector("main");
    document.querySelector("main").replaceWith(main ?? Object.assign(document.createElement("main"), { textContent: text }));
    return answer.ok && !document.getElementById("sign-in");
  }
  async function again() {
    const goes = await show().catch(() => true);
    if (goes && !document.getElementById("bubbles")) setTimeout(again, 5000);
  }
  if (!await show()) return;
  const list = document.getElementById("bubbles");
  if (!list) {
    setTimeout(again, 5000);
    return;
  }
  const { session, allow, deny } = list.dataset;
  let cursor = list.dataset.cursor, socket, wait = 500;
  const state = document.getElementById("state"), live = document.getElementById("live");
  const approvals = document.getElementById("approvals"), cancel = document.getElementById("cancel");
  const say = (message) => socket.send(JSON.stringify(message));
  cancel.onclick = () => say({ type: "cancel" });

  function bubble(frame) {
    const { id, role, content } = frame.data;
    if (id.startsWith("llm-")) return;
    const key = frame.run_id.slice(frame.run_id.lastIndexOf(".") + 1) + ":" + id;
    let card = [...list.children].find((child) => child.dataset.id === key);
    if (!card) {
      card = document.createElement("article");
      card.dataset.id = key;
      card.append(document.createElement("pre"));
      list.append(card);
    }
    card.className = role;
    card.firstChild.textContent = content;
  }

  function approval({ question, state, call_id, what, reason }) {
    document.getElementById("q" + question)?.remove();
    if (state !== "asked") return;
    const card = document.createElement("div");
    card.className = "approval";
    card.id = "q" + question;
    const text = document.createElement("pre");
    const shown = what.line || what.diff || what.about || JSON.stringify(what);
    text.textContent = [what.path, shown === JSON.stringify(what) && what.path ? null : shown, reason].filter(Boolean).join("\n");
    card.append(text);
    for (const [word, answer] of [[allow, "once"], [deny, "no"]]) {
      const button = document.createElement("button");
      button.textContent = word;
      button.onclick = () => say({ type: "approve", call_id, question, answer });
      card.append(button);
    }
    approvals.append(card);
  }

  function take(frame) {
    if (frame.cursor) cursor = frame.cursor;
    switch (frame.type) {
      case "bubble": bubble(frame); live.textContent = ""; break;
      case "approval": approval(frame.data); break;
      case "delta": case "tool_output": live.textContent = (live.textContent + frame.data.text).slice(-2000); break;
      case "status": state.textContent = frame.data.state; cancel.hidden = frame.data.state !== "running"; break;
      case "rewound": case "rewind_undone": location.reload(); break;
      case "start": state.textContent = "running"; cancel.hidden = false; break;
      case "completed": state.textContent = frame.data.agent_state; cancel.hidden = true; live.textContent = ""; break;
    }
  }

  function connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const query = new URLSearchParams({ session_id: session, from: cursor });
    const url = `${scheme}://${location.host}/ws/agent/interactive/task?${query}`;
    socket = new WebSocket(url, ["lathe", "lathe.page." + half]);
    socket.onopen = () => { wait = 500; };
    socket.onmessage = (message) => take(JSON.parse(message.data));
    socket.onclose = () => { state.textContent = "…"; setTimeout(connect, wait); wait = Math.min(wait * 2, 10000); };
  }
  connect();
})();
