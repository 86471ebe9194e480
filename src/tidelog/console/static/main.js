// The router: a page per address after '#', live while it is shown.
import { h, morph } from "./dom.js";
import { clusterPage } from "./cluster_page.js";
import { groupPage, groupsPage } from "./group_page.js";
import { recordPage, stopSearch } from "./record_page.js";
import { rewindPage } from "./rewind_page.js";
import { partitionPage, topicPage } from "./topic_page.js";
import { ask, follow } from "./server.js";
import { language, setLanguage, t } from "./words.js";

const page = document.getElementById("page"), trouble = document.getElementById("trouble");
let about = { read_only: true, is_local: false }, end = () => {};

function showTrouble(sentence) {
  trouble.hidden = !sentence;
  trouble.textContent = sentence ?? "";
}

function live(name, draw) {
  end();
  let fresh = true, last = null;
  const redraw = () => {
    if (!last) return;
    const made = h("div", {}, draw(last));
    if (fresh) { page.replaceChildren(...made.childNodes); fresh = false; } else morph(page, made);
  };
  const stop = follow(name, view => { last = view; redraw(); }, showTrouble, redraw);
  end = () => { stop(); last = null; end = () => {}; };
  return redraw;
}

async function showTopic(topic) {
  let configs = null;
  const load = async () => {
    try { configs = (await ask("/api/configs", { topic })).configs; redraw(); } catch (problem) { showTrouble(problem.message); }
  };
  const redraw = live(`topic:${topic}`, view => topicPage(view, about, configs, load));
  await load();
}

function route() {
  stopSearch(); end(); showTrouble(null);
  const [kind = "", ...parts] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  menu(kind);
  if (kind === "topics" && parts.length > 1) return live(`partition:${parts[0]}:${parts[1]}`, view => partitionPage(view, about));
  if (kind === "topics" && parts.length === 1) return showTopic(parts[0]);
  if (kind === "rewind" && parts.length > 1) return page.replaceChildren(rewindPage(parts[0], Number(parts[1])));
  if (kind === "records" && parts.length > 1) return page.replaceChildren(recordPage(parts[0], Number(parts[1]), about));
  if (kind === "groups" && parts.length === 1) return live(`group:${parts[0]}`, view => groupPage(view, about));
  if (kind === "groups") return live("groups", groupsPage);
  live("cluster", view => clusterPage(view, about));
}

function menu(kind) {
  const items = [["", t("Cluster")], ["groups", t("Groups")]];
  document.getElementById("nav").replaceChildren(...items.map(([name, title]) => h("a", { href: `#/${name}`, "aria-current": (kind === "groups") === (name === "groups") ? "page" : undefined }, title)));
  const button = document.getElementById("language");
  button.textContent = language() === "zh" ? "English" : "中文";
  button.onclick = () => { setLanguage(language() === "zh" ? "en" : "zh"); location.reload(); };
  document.documentElement.lang = language();
}

addEventListener("hashchange", route);
try { about = await ask("/api/about"); } catch (problem) { showTrouble(problem.message); }
document.getElementById("where").textContent = about.bootstrap ?? "";
route();
