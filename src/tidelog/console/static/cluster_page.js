// The page of the cluster: the verdict first, then brokers, unhealthy partitions, topics and the quorum.
import { card, h, number, pill, table } from "./dom.js";
import { act, createTopic } from "./dialogs.js";
import { t, verdict } from "./words.js";

export const partitionLink = (topic, partition) => h("a", { href: `#/topics/${encodeURIComponent(topic)}/${partition}` }, `${topic}-${partition}`);
export const topicLink = topic => h("a", { href: `#/topics/${encodeURIComponent(topic)}` }, topic);

export function clusterPage(view, about) {
  return h("div", {},
    h("div", { class: `verdict ${view.verdict.level}`, role: "status", id: "verdict" }, verdict(view.verdict)),
    h("div", { class: "brokers" }, view.brokers.map(one => broker(one, about))),
    view.unhealthy_count > 0 && card([h("h2", {}, `${t("Unhealthy partitions")} (${number(view.unhealthy_count)})`)], table(
      [[t("Partition")], [t("Leader"), "num"], [t("Replicas")], [t("In sync")], [t("Min ISR"), "num"]],
      view.unhealthy.map(one => [partitionLink(one.topic, one.partition), one.leader < 0 ? pill("bad", t("none")) : one.leader, one.replicas.join(", "), one.isr.join(", ") || "–", number(one.min_isr)]))),
    topics(view.topics, about),
    quorum(view));
}

function broker(one, about) {
  const buttons = one.state === "up" ? ["kill", "stop", "pause"] : ["start", "resume"];
  return h("div", { class: `broker ${one.state}`, "data-broker": one.id },
    h("b", {}, `${t("broker")} ${one.id} `), h("span", { class: "pills" }, pill(one.state === "up" ? "good" : "bad", t(one.state)), one.is_controller && pill("lead", t("controller"))),
    h("dl", {},
      h("dt", {}, one.address ?? "–"), h("dd", {}, one.rack ?? ""),
      h("dt", {}, t("leads")), h("dd", {}, number(one.leads)),
      h("dt", {}, t("replicas")), h("dd", {}, number(one.replicas)),
      h("dt", {}, t("out of sync")), h("dd", {}, number(one.out_of_sync))),
    about.is_local && h("div", { class: "acts" }, buttons.map(action => h("button", { class: action === "kill" ? "danger" : "", onclick: () => act(action, one.id), "aria-label": `${action} ${one.id}` }, t(action)))));
}

export function topics(rows, about) {
  const health = one => one.unavailable ? pill("bad", `${one.unavailable} ${t("unavailable")}`) : one.under_replicated ? pill("warn", `${one.under_replicated} ${t("under-replicated")}`) : pill("good", t("healthy"));
  return card([h("h2", {}, t("Topics")), !about.read_only && h("button", { class: "push", onclick: createTopic }, t("Create topic"))], table(
    [[t("Name")], [t("Partitions"), "num"], [t("Replicas"), "num"], [t("Min ISR"), "num"], [t("Health")]],
    rows.map(one => [[topicLink(one.name), one.internal ? " " : "", one.internal && pill("", t("internal"))], number(one.partitions), number(one.replicas), number(one.min_isr), health(one)])));
}

function quorum(view) {
  if (!view.quorum) return null;
  return card([h("h2", {}, t("Quorum")), pill("", `${t("leader")} ${view.quorum.leader}`), pill("", `${t("epoch")} ${view.quorum.epoch}`)], table(
    [[t("broker")], ["LEO", "num"], [t("Lag"), "num"]],
    view.quorum.voters.map(one => [one.id, number(one.log_end_offset), number(Math.max(0, view.quorum.high_watermark - one.log_end_offset))])));
}
