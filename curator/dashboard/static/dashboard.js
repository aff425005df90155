// Asks for the values every second, and draws them. Everything becomes text nodes and attributes;
// no HTML is ever made of a value. Only what changed is drawn again, so that an open list stays
// open and the keyboard stays where it is.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const drawn = new Map(); // what was drawn last, by place
const byId = (id) => document.getElementById(id);

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  fill(element, attributes, children);
  return element;
}

function shape(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  fill(element, attributes, children);
  return element;
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null));
}

function redraw(place, value, draw) {
  const text = JSON.stringify(value);
  if (drawn.get(place) === text) return;
  drawn.set(place, text);
  draw();
}

const badge = (words, kind) => make("span", { class: `badge ${kind}` }, words);
const plural = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

function bytes(number) {
  if (number < 1000) return `${number}\u00a0B`;
  const units = ["kB", "MB", "GB", "TB"];
  let step = -1;
  let value = number;
  while (value >= 1000 && step < units.length - 1) { value /= 1000; step += 1; }
  return `${value.toPrecision(3)}\u00a0${units[step]}`;
}

const moment = (text) => `${new Date(text).toISOString().slice(0, 19).replace("T", " ")} UTC`;
const when = (text) => (text ? make("time", { datetime: text }, moment(text)) : "never");

function table(caption, headings, rows) {
  const head = make("tr", {}, ...headings.map((words) => make("th", { scope: "col" }, words)));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell, column) => {
    const box = make("td", { "data-label": headings[column] });
    box.append(make("span", {}, ...[cell].flat()));
    return box;
  })));
  return make("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" },
    make("table", { class: "stack" }, make("caption", {}, caption),
      make("thead", {}, head), make("tbody", {}, ...body)));
}

function facts(pairs) {
  return make("dl", { class: "facts" }, ...pairs.flatMap(([name, value]) =>
    [make("dt", {}, name), make("dd", {}, ...[value].flat())]));
}

const STATUS = { done: "done", open: "under way", stopped: "stopped", later: "later" };

function phases(study) {
  return make("ol", { class: "phases", "aria-label": "Progress by phase" },
    ...study.phases.map((phase) => make("li", { class: phase.status },
      make("strong", {}, phase.name),
      make("span", {}, STATUS[phase.status]),
      phase.detail ? make("span", {}, ` · ${phase.detail}`) : null,
      phase.bytes ? make("span", { class: "quiet" }, ` · ${bytes(phase.bytes)}`) : null)));
}

function budget(sum) {
  if (!sum.terms.length) return "0";
  const terms = sum.terms.join(" + ").replaceAll("*", "×");
  return terms === sum.sum ? sum.sum : [`${terms} = `, make("strong", {}, sum.sum)];
}

function left(party) {
  const mark = badge("left", "bad");
  mark.setAttribute("title", party.left);
  return mark;
}

function awaited(party) {
  const mark = badge(`awaited for ${party.awaited_for}`, party.online ? "busy" : "bad");
  mark.setAttribute("title", `since ${moment(party.awaited_since)}`);
  return mark;
}

function partiesOf(study, allowed) {
  const rows = study.parties.map((party) => [
    party.name,
    party.approved_at ? badge("approved", "good") : badge("not approved", "quiet"),
    [party.online ? badge("online", "good") : badge("offline", party.awaited ? "bad" : "quiet"),
      party.awaited ? " " : "", party.awaited ? awaited(party) : "",
      party.left ? " " : "", party.left ? left(party) : "",
      ...(allowed.actions && study.can_miss && party.awaited ? [declareMissing(study, party)] : [])],
    party.rows.toLocaleString("en"),
    `${bytes(party.bytes_in)} / ${bytes(party.bytes_out)}`,
    budget(party.budget),
  ]);
  return table(`Parties; ${study.currency} is exact, and at most ${study.budget} was agreed on`,
    ["Party", "Owner", "Node", "Rows", "Bytes in / out", study.currency === "rho" ? "Rho so far" : "Epsilon so far"], rows);
}

function network(study) {
  const { names, links, phase } = study.network;
  if (study.picture) {
    const place = `/studies/${study.digest}/network.svg`;
    return make("figure", {},
      make("a", { href: place },
        make("img", { src: place, class: "picture",
          alt: `The released network of ${plural(names.length, "attribute")}, in full size` })),
      make("figcaption", {}, "The network of the release, or its strongest dependences. " +
        "It opens in full size."));
  }
  if (!links.length) {
    return make("p", { class: "quiet" }, "The network: no links yet, or every pair is looked at.");
  }
  const size = 440, centre = size / 2, radius = size / 2 - 86;
  const angle = (index) => (2 * Math.PI * index) / names.length - Math.PI / 2;
  const place = (index, out = 0) => [
    centre + (radius + out) * Math.cos(angle(index)),
    centre + (radius + out) * Math.sin(angle(index))];
  const picture = shape("svg", { class: "network", viewBox: `0 0 ${size} ${size}`, role: "img",
    "aria-label": `${plural(names.length, "attribute")}, ${plural(links.length, "link")}` });
  for (const [a, b, fresh] of links) {
    const [x1, y1] = place(a), [x2, y2] = place(b);
    picture.append(shape("path", { class: fresh ? "link fresh" : "link",
      d: `M${x1} ${y1}Q${(x1 + x2 + centre) / 3} ${(y1 + y2 + centre) / 3} ${x2} ${y2}` },
      shape("title", {}, `${names[a]} with ${names[b]}`)));
  }
  names.forEach((name, index) => {
    const [x, y] = place(index), [tx, ty] = place(index, 12), turn = (angle(index) * 180) / Math.PI;
    const left = Math.cos(angle(index)) < -0.01;
    picture.append(shape("circle", { class: "node", cx: x, cy: y, r: 5 }, shape("title", {}, name)),
      shape("text", { x: tx, y: ty, "dominant-baseline": "middle",
        "text-anchor": left ? "end" : "start",
        transform: `rotate(${left ? turn + 180 : turn} ${tx} ${ty})` },
        name.length > 13 ? `${name.slice(0, 12)}…` : name));
  });
  return make("figure", {}, picture, make("figcaption", {}, "Attributes joined by a line are " +
    `chosen or counted together (phase ${phase}); new lines are thick.`));
}

function trouble(study) {
  if (!study.cause && !study.advice) return null;
  return make("div", { class: "trouble", role: "note" },
    make("p", {}, make("strong", {}, study.cause || study.state)), make("p", {}, study.advice));
}

// A form that does one thing to a study, once `question` (of its values) is answered with yes.
function action(study, name, question, ...content) {
  const form = make("form", { method: "post", action: `/studies/${study.digest}/${name}` },
    make("input", { type: "hidden", name: "csrf", value: document.body.dataset.csrf }), ...content);
  form.addEventListener("submit", (event) => {
    if (!confirm(question(new FormData(form)))) event.preventDefault();
  });
  return form;
}

const CHARGED = "Every owner reviews and approves it anew; it is charged beside the earlier one.";

function declareMissing(study, party) {
  return action(study, "missing",
    () => `Go on with “${study.name}” without ${party.name}, for good? The parties are told; what is spent stays spent.`,
    make("input", { type: "hidden", name: "owner", value: party.name }),
    make("button", { type: "submit", class: "missing" }, "Declare missing"));
}

function actions(study, allowed) {
  const forms = [];
  if (allowed.actions && !study.over) {
    forms.push(action(study, "abort",
      () => `Give up “${study.name}” for good? The parties are told; what is spent stays spent.`,
      make("button", { type: "submit", class: "danger" }, "Give this study up")));
  }
  if (study.rehearsal) return forms; // what is offered again is the study itself
  if (allowed.offers && study.done) {
    forms.push(action(study, "renew",
      () => `Offer “${study.next_name}” to ${study.parties.map((party) => party.name).join(", ")}? ${CHARGED}`,
      make("button", { type: "submit", class: "renew" }, `Offer “${study.next_name}”`)));
  }
  if (allowed.offers && study.over && !study.done && study.parties.length > 1) {
    const owners = study.parties.map((party) => make("option", {}, party.name));
    forms.push(action(study, "reform",
      (values) => `Offer “${study.name}” again without ${values.get("owner")}? ${CHARGED}`,
      make("label", {}, "Without ", make("select", { name: "owner" }, ...owners)), " ",
      make("button", { type: "submit", class: "reform" }, "Offer it again")));
  }
  return forms;
}

function drawStudy(study, allowed, first) {
  const before = byId(`study-${study.digest}`);
  const open = before ? before.open : first || !study.over;
  const box = make("details", { class: "study card", id: `study-${study.digest}` },
    make("summary", {}, `${study.name} `, badge(study.state, study.kind),
      study.rehearsal ? " " : "", study.rehearsal ? badge("rehearsal", "quiet") : "",
      study.overdue ? " " : "", study.overdue ? badge("overdue", "bad") : ""),
    trouble(study),
    phases(study),
    ...study.cautions.map((words) => make("p", { class: "warning", role: "note" }, words)),
    study.release ? make("p", {}, make("a", { class: "button", download: "",
      href: `/studies/${study.digest}/release.zip` }, "Download the release")) : null,
    make("div", { class: study.network.links.length && !study.picture ? "columns" : "" },
      make("div", {}, partiesOf(study, allowed),
        facts([
          ["Method", `${study.method}, profile ${study.profile}, ${study.aggregation}`],
          ["Agreed epsilon", study.epsilon],
          ...(study.delta === "0" ? [] : [["Agreed delta", study.delta]]),
          ["Table", study.tables],
          ...(study.waits_for ? [["Waits for", study.waits_for]] : []),
          ["Offered", when(study.proposed_at)],
          ["Ended", study.ended_at ? when(study.ended_at) : "not yet"],
          ["Digest", make("code", {}, study.digest)]]),
        ...actions(study, allowed)),
      network(study)));
  box.open = open;
  return box;
}

function drawStudies(state) {
  const place = byId("studies");
  const wanted = new Set(state.studies.map((study) => `study-${study.digest}`));
  for (const child of [...place.children]) if (!wanted.has(child.id)) child.remove();
  state.studies.forEach((study, index) => {
    redraw(`study-${study.digest}`, [study, state.actions, state.offers], () => {
      const fresh = drawStudy(study, state, index === 0);
      const before = byId(fresh.id);
      if (!before) { place.insertBefore(fresh, place.children[index] || null); return; }
      const focused = before.contains(document.activeElement)
        ? [...before.querySelectorAll("summary, a, button, select")].indexOf(document.activeElement) : -1;
      const [chosen, choice] = [before, fresh].map((box) => box.querySelector("select"));
      if (chosen && choice) choice.value = chosen.value;
      before.replaceWith(fresh);
      if (focused >= 0) fresh.querySelectorAll("summary, a, button, select")[focused]?.focus();
    });
  });
  if (!state.studies.length) {
    place.replaceChildren(make("p", { class: "quiet" },
      "None yet. Write one with `parley curator study new`, offer it with `parley curator study add`."));
  }
}

function drawOverview(state) {
  const states = new Map();
  for (const study of state.studies) states.set(study.state, (states.get(study.state) ?? 0) + 1);
  const counted = [...states].map(([words, number]) => `${number} ${words}`).join(", ");
  byId("overview").textContent = counted ? `Studies: ${counted}` : "";
}

function draw(state) {
  redraw("overview", state.studies.map((study) => study.state), () => drawOverview(state));
  drawStudies(state);
  redraw("parties", state.parties, () => byId("parties").replaceChildren(state.parties.length
    ? table("Parties that have called, or are in a study shown here; epsilon over these studies",
      ["Party", "Node", "Last seen", "Version", "Studies", "Epsilon in all"],
      state.parties.map((party) => [party.name,
        party.online ? badge("online", "good") : badge("offline", "quiet"),
        when(party.seen_at), party.software || "not known", String(party.studies), party.spent]))
    : make("p", { class: "quiet" }, "No party has called yet.")));
  redraw("troubles", state.troubles, () => byId("troubles").replaceChildren(state.troubles.length
    ? table("Since the curator started, by reason", ["Reason", "Calls", "What happened", "What to do"],
      state.troubles.map((each) => [make("code", {}, each.code), String(each.count), each.what, each.todo]))
    : make("p", { class: "quiet" }, "None since the curator started.")));
  redraw("notices", [state.certificate_days, state.certificate_ends], () =>
    byId("notices").replaceChildren(...(state.certificate_days < 30
      ? [make("p", { class: "warning" }, `The curator's certificate ends in ${plural(Math.max(0, state.certificate_days), "day")}, on ${moment(state.certificate_ends)}: renew it with \`parley keys rotate\`.`)]
      : [])));
  const older = state.older ? ` Older studies not shown: ${state.older}.` : "";
  byId("foot").textContent = `${state.software}; ${state.actions || state.offers ? "actions allowed" : "read only"}.${older}`;
}

async function follow() {
  let version = "";
  for (;;) {
    try {
      const answer = await fetch("/state", { headers: { "If-None-Match": version } });
      if (answer.status === 401) { location.assign("/login"); return; }
      if (answer.ok) {
        version = answer.headers.get("ETag");
        draw(await answer.json());
      } else if (answer.status !== 304) throw new Error(answer.status);
      redraw("link", "live", () => byId("link").replaceChildren(badge("live", "good")));
    } catch {
      redraw("link", "lost", () => {
        byId("link").textContent = "No connection to the curator; trying again …";
      });
    }
    await new Promise((done) => setTimeout(done, 1000));
  }
}

follow();
