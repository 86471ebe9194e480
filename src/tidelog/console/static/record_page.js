// The page of records: by offset or time, newest first choice, search with progress, download.
import { card, h, number, table } from "./dom.js";
import { produce } from "./dialogs.js";
import { topicLink } from "./cluster_page.js";
import { ask } from "./server.js";
import { t } from "./words.js";

const PAGE = 50;
let source = null;
export const stopSearch = () => { source?.close(); source = null; };

export function recordPage(topic, partition, about) {
  const error = h("div", { class: "dim", role: "alert" }), rows = h("div", { id: "records" }), progress = h("progress", { max: 1, value: 0, hidden: true });
  const at = h("input", { name: "at", value: "latest", "aria-label": t("Offset") }), text = h("input", { name: "text", "aria-label": t("Search"), placeholder: t("Search") });
  let shown = null;
  const show = async where => {
    stopSearch(); progress.hidden = true; error.textContent = "";
    try {
      shown = await ask("/api/records", { topic, partition, at: where, limit: PAGE });
      draw(shown.records);
      error.textContent = `${number(shown.start)} – ${number(shown.next - 1)} / ${number(shown.end)}`;
    } catch (problem) { error.textContent = problem.message; }
  };
  const draw = records => rows.replaceChildren(records.length ? recordTable(topic, records) : h("div", { class: "body dim" }, t("No records here.")));
  const search = () => {
    stopSearch();
    if (!text.value) return;
    const found = [];
    progress.hidden = false; progress.value = 0; draw([]);
    source = new EventSource(`/api/search?${new URLSearchParams({ topic, partition, text: text.value })}`);
    source.addEventListener("found", event => {
      const step = JSON.parse(event.data);
      progress.value = step.progress;
      if (step.records.length) { found.push(...step.records); draw(found); }
      error.textContent = `${number(step.read)} ${t("records read")}, ${number(found.length)} ${t("found")}`;
    });
    source.addEventListener("end", () => { progress.value = 1; stopSearch(); });
    source.addEventListener("trouble", event => { error.textContent = JSON.parse(event.data).sentence; stopSearch(); });
    source.onerror = stopSearch;
  };
  show("latest");
  return h("div", {}, h("h1", {}, topicLink(topic), ` / ${partition} / ${t("Records")}`),
    card([h("form", { onsubmit: event => { event.preventDefault(); show(at.value); } }, at, h("button", { type: "submit", class: "main" }, t("Show")),
      h("button", { type: "button", onclick: () => shown && show(String(Math.max(0, shown.start - PAGE))) }, t("Older")),
      h("button", { type: "button", onclick: () => shown && show(String(shown.next)) }, t("Newer")),
      h("button", { type: "button", onclick: () => show("latest") }, t("Latest"))),
      h("form", { class: "push", onsubmit: event => { event.preventDefault(); search(); } }, text, h("button", { type: "submit" }, t("Search")), h("button", { type: "button", onclick: stopSearch }, t("Stop"))),
      !about.read_only && h("button", { onclick: async () => { if (await produce(topic, partition)) show("latest"); } }, t("Produce"))],
      h("div", { class: "body" }, progress, error), rows));
}

function recordTable(topic, records) {
  return table([[t("Offset"), "num"], [t("Time")], [t("Key"), "value"], [t("Value"), "value"], [t("Headers"), "value"], [""]], records.map(one => [
    number(one.offset), one.timestamp < 0 ? "–" : new Date(one.timestamp).toISOString().replace("T", " ").replace("Z", ""), content(one.key), content(one.value),
    one.headers.map(header => h("div", {}, `${header.key}: `, content(header.value))),
    h("a", { href: `/api/value?${new URLSearchParams({ topic, partition: one.partition, offset: one.offset })}`, "aria-label": `${t("Download")} ${one.offset}` }, t("Download"))]));
}

function content(data) {
  if (data === null) return h("span", { class: "dim" }, "null");
  const more = data.cut ? h("span", { class: "dim" }, ` … (${number(data.size)} B)`) : "";
  return [data.hex !== undefined ? data.hex : pretty(data.text), more];
}

function pretty(text) {
  if (!/^\s*[{[]/.test(text)) return text;
  try { return JSON.stringify(JSON.parse(text), null, 1); } catch { return text; }
}
