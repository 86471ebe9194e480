// The pages of consumer groups: members, offsets, lag with its trend, and a reset with a preview.
import { card, h, number, pill, table, trend } from "./dom.js";
import { partitionLink } from "./cluster_page.js";
import { change } from "./server.js";
import { t } from "./words.js";

export const groupsPage = view => card([h("h2", {}, t("Groups"))], table([[t("Group")], [t("State")], [t("Type")]],
  view.groups.map(one => [h("a", { href: `#/groups/${encodeURIComponent(one.name)}` }, one.name), pill(one.state === "Stable" ? "good" : "", one.state), one.type])));

const lags = new Map();
export function groupPage(view, about) {
  const known = [...(lags.get(view.name) ?? []), view.lag].slice(-60);
  lags.set(view.name, known);
  const topics = [...new Set(view.positions.map(one => one.topic))];
  return h("div", {}, h("h1", {}, view.name),
    card([pill(view.state === "Stable" ? "good" : "", view.state), pill("", `${t("Lag")} ${number(view.lag)}`), trend(known),
      !about.read_only && topics.length > 0 && h("button", { class: "push", onclick: () => resetDialog(view.name, topics) }, t("Reset offsets"))],
      table([[t("Partition")], [t("Committed"), "num"], [t("End"), "num"], [t("Lag"), "num"], [t("Member")]],
        view.positions.map(one => [partitionLink(one.topic, one.partition), number(one.committed), number(one.end), number(one.lag), one.member ?? "–"]))),
    card([h("h2", {}, `${t("Members")} (${view.members.length})`)], table([[t("Member")], ["ID"], ["Host"], [t("Partitions"), "num"]],
      view.members.map(one => [one.client, one.id, one.host, number(one.partitions)]))));
}

function resetDialog(group, topics) {
  const dialog = document.getElementById("dialog"), result = h("div", {}), error = h("div", { class: "error", role: "alert" });
  const topic = h("select", { name: "topic" }, topics.map(one => h("option", {}, one))), to = h("input", { name: "to", value: "earliest" });
  const run = async dry_run => {
    error.textContent = "";
    try {
      const answer = await change("/api/change/reset-offsets", { group, topic: topic.value, to: to.value, dry_run });
      if (answer.is_done) return dialog.close();
      result.replaceChildren(table([[t("Partition"), "num"], [t("Committed"), "num"], ["→", "num"]], answer.offsets.map(one => [one.partition, number(one.before), number(one.after)])));
    } catch (problem) { error.textContent = problem.message; }
  };
  dialog.replaceChildren(h("form", { onsubmit: event => { event.preventDefault(); run(true); } }, h("h2", {}, `${t("Reset offsets")}: ${group}`),
    h("label", {}, t("Topics"), topic), h("label", {}, "earliest, latest, 42, @1700000000000", to), result, error,
    h("div", { class: "acts" }, h("button", { type: "button", onclick: () => dialog.close() }, t("Cancel")), h("button", { type: "submit" }, t("Preview")), h("button", { type: "button", class: "danger", onclick: () => run(false) }, t("Apply")))));
  dialog.showModal();
}
