// Talks to the console's server: answers, changes, and live streams that come back by themselves.
export async function ask(path, fields = {}) {
  const query = new URLSearchParams(fields);
  return answerOf(await fetch(`${path}?${query}`));
}

export async function change(path, body) {
  return answerOf(await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }));
}

async function answerOf(response) {
  let answer = {};
  try { answer = await response.json(); } catch { /* told below */ }
  if (!response.ok) throw new Error(answer.sentence || `HTTP ${response.status}`);
  return answer;
}

/** Follow a view. `look` gets each new state, `same` is called if it has not changed, `trouble` gets a sentence, or null when all is well. Returns a function that ends it. */
export function follow(name, look, trouble, same) {
  const source = new EventSource(`/api/live?${new URLSearchParams({ name })}`);
  source.addEventListener("look", event => { trouble(null); look(JSON.parse(event.data)); });
  source.addEventListener("same", same);
  source.addEventListener("trouble", event => trouble(JSON.parse(event.data).sentence));
  source.onerror = () => trouble("The console's server does not answer; trying again.");
  return () => source.close();
}
