// The pages of a topic and of one partition with its live lanes.
import { card, h, number, pill, table, trend } from "./dom.js";
import { addPartitions, alterConfig, defaultConfig, deleteTopic, produce } from "./dialogs.js";
import { lanes, legend } from "./lanes.js";
import { partitionLink, topicLink } from "./cluster_page.js";
import { change } from "./server.js";
import { t } from "./words.js";

export function topicPage(view, about, configs, reload) {
  const name = view.name;
  const actions = about.read_only ? [] : [
    h("button", { class: "push", onclick: () => addPartitions(name, view.partitions.length) }, t("Add partitions")),
    h("button", { onclick: () => produce(name, null) }, t("Produce")),
    h("button", { class: "danger", onclick: async () => { if (await deleteTopic(name)) location.hash = "#/"; } }, t("Delete topic"))];
  return h("div", {}, h("h1", {}, name),
    card([h("h2", {}, t("Partitions")), h("a", { href: `#/records/${encodeURIComponent(name)}/0` }, t("Records")), actions], table(
      [[t("Partition")], [t("Leader"), "num"], [t("Log start"), "num"], [t("High watermark"), "num"], [t("Replicas")]],
      view.partitions.map(one => [partitionLink(name, one.number), one.leader < 0 ? pill("bad", t("none")) : one.leader, number(one.start), number(one.high_watermark),
        h("span", { class: "pills" }, one.replicas.map(r => pill(r.in_sync ? (r.id === one.leader ? "lead" : "good") : "bad", r.lag > 0 ? `${r.id}: −${number(r.lag)}` : `${r.id}`)))]))),
    settings(name, configs, about, reload));
}

function settings(topic, configs, about, reload) {
  if (!configs) return null;
  const edit = one => h("span", { class: "acts" }, h("button", { onclick: async () => { if (await alterConfig(topic, one.name, one.value ?? "")) reload(); }, "aria-label": `${t("Change")} ${one.name}` }, t("Change")),
    one.is_own && h("button", { onclick: async () => { if (await defaultConfig(topic, one.name)) reload(); }, "aria-label": `${t("Reset to default")} ${one.name}` }, t("Reset to default")));
  return card([h("h2", {}, t("Settings"))], table([[t("Key")], [t("Value"), "value"], [t("Source")], [""]],
    configs.map(one => [one.is_default ? one.name : h("b", {}, one.name), one.value ?? "", one.source, about.read_only ? "" : edit(one)])));
}

const rates = new Map();
function rateOf(view) {
  const key = `${view.topic}-${view.partition}`, now = performance.now(), end = Math.max(0, ...view.replicas.map(one => one.end ?? 0));
  const known = rates.get(key) ?? { values: [], at: now, end };
  if (now - known.at > 500) { known.values = [...known.values, Math.max(0, Math.round(1000 * (end - known.end) / (now - known.at)))].slice(-60); known.at = now; known.end = end; }
  rates.set(key, known);
  return known.values;
}

export function partitionPage(view, about) {
  const values = rateOf(view);
  return h("div", {}, h("h1", {}, topicLink(view.topic), ` / ${view.partition}`),
    h("div", { class: "two" },
      h("div", {},
        card([view.leader < 0 ? pill("bad", t("none")) : pill("lead", `${t("leader")} ${view.leader}`), pill("", `${t("epoch")} ${view.epoch}`), pill("", `${t("High watermark")} ${number(view.high_watermark)}`),
          h("a", { class: "push", href: `#/rewind/${encodeURIComponent(view.topic)}/${view.partition}` }, t("Rewind")),
          h("a", { href: `#/records/${encodeURIComponent(view.topic)}/${view.partition}` }, t("Records")),
          !about.read_only && h("button", { onclick: () => produce(view.topic, view.partition) }, t("Produce")),
          !about.read_only && h("button", { onclick: () => change("/api/change/elect", { topic: view.topic, partition: view.partition }).catch(problem => alert(problem.message)) }, t("Elect preferred leader"))],
          lanes(view, t), legend(view, t)),
        card([h("h2", {}, t("New records per second")), h("span", { class: "push num" }, number(values.at(-1) ?? 0))], h("div", { class: "body plot" }, trend(values, "plotted")))),
      card([h("h2", {}, t("Explanation"))], h("div", { class: "body explain", id: "explanation" },
        explanation(view)))));
}

/** The sentences of an explanation: a headline, then headings with sentences. */
export function explanation(view) {
  const [headline, ...rest] = view.explanation;
  if (!headline) return [];
  return [h("p", { class: "headline" }, headline.heading), ...headline.sentences.map(one => h("p", {}, one)),
    ...rest.flatMap(part => [h("h3", {}, t(part.heading)), ...part.sentences.map(one => h("p", {}, one))])];
}
