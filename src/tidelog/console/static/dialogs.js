// Dialogs that ask before a change, and tell in one sentence why it failed.
import { h } from "./dom.js";
import { change } from "./server.js";
import { t } from "./words.js";

/** Ask for fields and send them; `fields` are [name, label, type, value]. Resolves to the answer, or null. */
export function form(title, fields, send, { danger = false, note = "" } = {}) {
  const dialog = document.getElementById("dialog"), error = h("div", { class: "error", role: "alert" });
  return new Promise(resolve => {
    const inputs = fields.map(([name, label, type, value]) => [name, type, type === "textarea" ? h("textarea", { name, rows: 6 }, value ?? "") : h("input", { name, type, value: value ?? "" }), label]);
    const done = answer => { dialog.close(); resolve(answer); };
    const submit = async event => {
      event.preventDefault();
      try { done(await send(Object.fromEntries(inputs.map(([name, type, input]) => [name, type === "number" ? Number(input.value) : input.value])))); }
      catch (problem) { error.textContent = problem.message; }
    };
    dialog.replaceChildren(h("form", { onsubmit: submit }, h("h2", {}, title), note && h("p", {}, note),
      inputs.map(([, , input, label]) => h("label", {}, label, input)), error,
      h("div", { class: "acts" }, h("button", { type: "button", onclick: () => done(null) }, t("Cancel")), h("button", { class: danger ? "danger" : "main", type: "submit" }, title))));
    dialog.oncancel = () => resolve(null);
    dialog.showModal();
  });
}

export const createTopic = () => form(t("Create topic"), [["topic", t("Name"), "text"], ["partitions", t("Partitions"), "number", 3], ["replicas", t("Replicas"), "number", 3]], fields => change("/api/change/create-topic", fields));
export const deleteTopic = topic => form(t("Delete topic"), [["again", t("Name"), "text"]], fields => {
  if (fields.again !== topic) throw new Error(`${topic}?`);
  return change("/api/change/delete-topic", { topic });
}, { danger: true, note: topic });
export const addPartitions = (topic, now) => form(t("Add partitions"), [["partitions", t("Partitions"), "number", now + 1]], fields => change("/api/change/add-partitions", { topic, ...fields }));
export const alterConfig = (topic, key, value) => form(t("Change"), [["value", key, "text", value]], fields => change("/api/change/alter-config", { topic, key, value: fields.value }));
export const defaultConfig = (topic, key) => form(t("Reset to default"), [], () => change("/api/change/alter-config", { topic, key, value: null }), { note: key });
export const produce = (topic, partition) => form(t("Produce a record"), [["key", t("Key"), "text"], ["value", t("Value"), "textarea"]], fields => change("/api/change/produce", { topic, partition, key: fields.key || null, value: fields.value }));
export const act = (action, node) => form(t(action), [], () => change(`/api/node/${action}`, { node }), { danger: action === "kill", note: `${t(action)}: broker ${node}. ${t("Are you sure?")}` });
