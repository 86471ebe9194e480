// The page that goes back in time: a slider over the events of a partition, with lanes and explanation as of then.
import { card, h, pill } from "./dom.js";
import { lanes, legend } from "./lanes.js";
import { topicLink } from "./cluster_page.js";
import { explanation } from "./topic_page.js";
import { ask } from "./server.js";
import { t } from "./words.js";

const clock = at => new Date(at).toISOString().slice(11, 23);

export function rewindPage(topic, partition) {
  const stage = h("section", { class: "card" }), text = h("div", { class: "body explain", id: "explanation" }), list = h("div", { class: "body events", id: "events" }), when = h("b", { class: "num", id: "when" });
  const slider = h("input", { type: "range", min: 0, max: 0, value: 0, class: "slider", "aria-label": t("Time") }), error = h("div", { class: "error", role: "alert" });
  let line = { events: [], moments: [] }, asked = 0;
  const show = async index => {
    const at = line.moments[index], mine = ++asked;
    if (at === undefined) return;
    slider.value = index; when.textContent = clock(at);
    try {
      const view = await ask("/api/rewind", { topic, partition, at });
      if (mine !== asked) return;
      stage.replaceChildren(h("div", { class: "head" }, view.leader < 0 ? pill("bad", t("none")) : pill("lead", `${t("leader")} ${view.leader}`), pill("", `${t("epoch")} ${view.epoch}`)), lanes(view, t), legend(view, t));
      text.replaceChildren(...explanation(view));
      error.textContent = "";
      [...list.children].forEach(one => one.classList.toggle("past", Number(one.dataset.at) <= at));
    } catch (problem) { error.textContent = problem.message; }
  };
  const nearest = at => line.moments.findLastIndex(one => one <= at);
  slider.oninput = () => show(Number(slider.value));
  ask("/api/rewind", { topic, partition }).then(found => {
    line = found;
    slider.max = Math.max(0, found.moments.length - 1);
    list.replaceChildren(...found.events.map(one => h("button", { class: `event ${one.kind}`, "data-at": one.at, onclick: () => show(Math.max(0, nearest(one.at))) }, h("span", { class: "num dim" }, clock(one.at)), ` ${one.text}`)));
    show(found.moments.length - 1);
  }).catch(problem => { error.textContent = problem.message; });
  return h("div", {}, h("h1", {}, topicLink(topic), ` / ${partition} / ${t("Rewind")}`),
    card([when, slider, h("button", { type: "button", onclick: () => show(Number(slider.value) - 1), "aria-label": t("Older") }, "←"), h("button", { type: "button", onclick: () => show(Number(slider.value) + 1), "aria-label": t("Newer") }, "→")], error),
    h("div", { class: "two" }, h("div", {}, stage, card([h("h2", {}, t("Events"))], list)), card([h("h2", {}, t("Explanation"))], text)));
}
