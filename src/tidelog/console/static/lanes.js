// Draws the log of each replica: records in the colour of their leader epoch, the high watermark, the log end offset.
import { h, number, pill } from "./dom.js";

const HUES = [212, 28, 150, 285, 345, 185, 50, 250];
export const ink = epoch => `hsl(${HUES[Math.max(0, epoch) % HUES.length]} 68% 46%)`;

/** The lanes of one partition; `view` is the partition as the server tells of it. */
export function lanes(view, t) {
  const ends = view.replicas.map(one => one.end ?? 0);
  const start = view.start ?? 0, top = Math.max(start + 1, ...ends, view.high_watermark ?? 0);
  const shown = { from: start, to: top };
  return h("div", { class: "lanes" }, view.replicas.map(one => lane(view, one, shown, t)));
}

function lane(view, one, shown, t) {
  const leads = one.id === view.leader;
  const kind = one.end === null ? "unknown" : one.in_sync ? "insync" : "out";
  const who = h("div", { class: "who" },
    h("div", { class: "name" }, `${t("broker")} ${one.id}`),
    h("div", { class: "pills" },
      leads && pill("lead", t("leader")),
      pill(one.in_sync ? "good" : "bad", one.in_sync ? t("in sync") : t("not in sync")),
      one.end === null && pill("warn", t("no answer")),
      one.lag > 0 && pill("", `${t("lag")} ${number(one.lag)}`)));
  const hw = Math.min(view.high_watermark ?? 0, one.end ?? 0);
  return h("div", { class: `lane ${kind} ${one.in_sync ? "insync" : "out"}` }, who,
    h("div", { class: "logbox" }, one.end === null ? h("div", { class: "empty" }, t("The offset of this replica is not known.")) : log(view, one, hw, shown)));
}

function log(view, one, hw, shown) {
  const width = Math.max(1, shown.to - shown.from), percent = offset => `${(100 * (Math.min(Math.max(offset, shown.from), shown.to) - shown.from) / width).toFixed(2)}%`;
  const cuts = [...new Set([shown.from, hw, one.end, ...view.epochs.map(([, start]) => start)])].filter(o => o >= shown.from && o <= one.end).sort((a, b) => a - b);
  const bars = cuts.slice(0, -1).map((from, index) => {
    const epoch = view.epochs.filter(([, start]) => start <= from).at(-1)?.[0] ?? 0, to = cuts[index + 1];
    return h("div", { class: from < hw ? "bar" : "bar open", title: `${from} – ${to}`, style: { left: percent(from), width: `${(100 * (to - from) / width).toFixed(2)}%`, background: ink(epoch) } });
  });
  return [h("div", { class: "log" }, bars), mark("leo", "LEO", one.end, percent), mark("hw", "HW", hw, percent)];
}

function mark(kind, label, offset, percent) {
  return h("div", { class: `mark ${kind}`, style: { left: percent(offset) } }, h("i"), h("span", {}, `${label} ${number(offset)}`));
}

export function legend(view, t) {
  return h("div", { class: "epochs" }, view.epochs.map(([epoch, start]) => h("span", {}, h("span", { class: "swatch", style: { background: ink(epoch) } }), `${t("epoch")} ${epoch} ${t("from")} ${number(start)}`)));
}
