// Draws the plant on a canvas, and moves it by dragging, the wheel, keys and fingers. What it shows also stands in the list
// below it, as links. The server gives boxes, customers and breaks between the edges of the view; the address follows it.
"use strict";

(() => {
  const map = document.getElementById("map");
  const canvas = map?.querySelector("canvas");
  if (!canvas) {
    return;
  }
  const words = JSON.parse(map.dataset.words);
  const list = document.getElementById("map-list");
  const tip = document.getElementById("map-tip");
  const pen = canvas.getContext("2d");
  const TILE = 256;
  const [LEAST, MOST] = [2, 20];
  // From here on customers are shown: a few streets.
  const CLOSE = 15;
  const NAMES = 14;
  const REST_MS = 200;
  const REFRESH_MS = 10_000;
  const DRAG_PIXELS = 4;
  const REACH = 14;
  const MOST_LISTED = 60;
  const MOST_TILES = 256;
  const WORST = ["dark", "some_offline", "weak", "unknown", "well"];
  const EARTH_METRES = 40_075_016;
  let features = [];
  let view = null; // {x, y, zoom}: the middle, from 0 to 1 across the world, and the zoom
  let timer = 0;
  let asked = 0;
  let isDrawing = false;
  let colours = {};
  const tiles = new Map();

  const toX = (longitude) => (longitude + 180) / 360;
  const toY = (latitude) => {
    const sine = Math.sin(Math.min(Math.max(latitude, -85), 85) * Math.PI / 180);
    return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
  };
  const toLongitude = (x) => x * 360 - 180;
  const toLatitude = (y) => Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180 / Math.PI;
  const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
  const scale = () => TILE * 2 ** view.zoom;
  const size = () => [canvas.clientWidth, canvas.clientHeight];
  const onScreen = ([x, y]) => {
    const [width, height] = size();
    return [(x - view.x) * scale() + width / 2, (y - view.y) * scale() + height / 2];
  };
  const world = ([longitude, latitude]) => [toX(longitude), toY(latitude)];

  const bounds = (margin) => {
    const [width, height] = size();
    const [across, up] = [width / scale() * (0.5 + margin), height / scale() * (0.5 + margin)];
    return {
      west: Math.max(toLongitude(view.x - across), -180),
      east: Math.min(toLongitude(view.x + across), 180),
      north: toLatitude(Math.max(view.y - up, 0)),
      south: toLatitude(Math.min(view.y + up, 1)),
    };
  };

  const fit = (west, south, east, north) => {
    const [width, height] = size();
    const [left, right, top, bottom] = [toX(west), toX(east), toY(north), toY(south)];
    const across = Math.log2(width * 0.85 / TILE / Math.max(right - left, 1e-6));
    const up = Math.log2(height * 0.85 / TILE / Math.max(bottom - top, 1e-6));
    view = { x: (left + right) / 2, y: (top + bottom) / 2, zoom: clamp(Math.min(across, up), LEAST, 17) };
  };

  const fitWhole = () => fit(...["west", "south", "east", "north"].map((edge) => Number(map.dataset[edge])));

  const readColours = () => {
    const style = getComputedStyle(map);
    for (const name of [...WORST, "ink", "muted", "line", "ground", "panel", "accent"]) {
      colours[name] = style.getPropertyValue(`--map-${name}`).trim() || style.getPropertyValue(`--${name}`).trim();
    }
  };

  // Of the state, so that the colour is not all that tells it.
  const outline = (look, x, y, r) => {
    pen.beginPath();
    if (look === "dark") {
      pen.rect(x - r, y - r, 2 * r, 2 * r);
    } else if (look === "some_offline") {
      pen.moveTo(x, y - r * 1.3);
      pen.lineTo(x + r * 1.3, y);
      pen.lineTo(x, y + r * 1.3);
      pen.lineTo(x - r * 1.3, y);
      pen.closePath();
    } else if (look === "weak") {
      pen.moveTo(x, y - r * 1.2);
      pen.lineTo(x + r * 1.2, y + r);
      pen.lineTo(x - r * 1.2, y + r);
      pen.closePath();
    } else {
      pen.arc(x, y, r, 0, 2 * Math.PI);
    }
  };

  const drawMark = (look, x, y, r) => {
    outline(look, x, y, r);
    pen.fillStyle = look === "unknown" ? colours.panel : colours[look];
    pen.strokeStyle = look === "unknown" ? colours.muted : colours.panel;
    pen.lineWidth = look === "unknown" ? 2 : 1.5;
    pen.fill();
    pen.stroke();
  };

  const drawText = (text, x, y, font, colour) => {
    pen.font = font;
    pen.textAlign = "center";
    pen.lineWidth = 3;
    pen.strokeStyle = colours.ground;
    pen.fillStyle = colour;
    pen.strokeText(text, x, y);
    pen.fillText(text, x, y);
  };

  const drawTiles = () => {
    const zoom = clamp(Math.round(view.zoom), 0, 19);
    const count = 2 ** zoom;
    const edge = scale() / count;
    const [width, height] = size();
    const [left, top] = [view.x * count - width / 2 / edge, view.y * count - height / 2 / edge];
    for (let column = Math.floor(left); column <= left + width / edge; column += 1) {
      for (let row = Math.max(Math.floor(top), 0); row <= Math.min(top + height / edge, count - 1); row += 1) {
        const address = map.dataset.tiles.replace("{z}", zoom).replace("{x}", (column + count) % count).replace("{y}", row);
        let image = tiles.get(address);
        if (!image) {
          image = new Image();
          image.addEventListener("load", draw);
          image.src = address;
          tiles.set(address, image);
          if (tiles.size > MOST_TILES) {
            tiles.delete(tiles.keys().next().value);
          }
        }
        if (image.complete && image.naturalWidth) {
          pen.drawImage(image, (column - left) * edge, (row - top) * edge, edge + 1, edge + 1);
        }
      }
    }
  };

  const drawLine = (points, colour, width, dash) => {
    pen.beginPath();
    points.forEach((point, number) => (number ? pen.lineTo(...point) : pen.moveTo(...point)));
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.setLineDash(dash);
    pen.stroke();
    pen.setLineDash([]);
  };

  const drawScale = () => {
    const [, height] = size();
    const perPixel = EARTH_METRES * Math.cos(toLatitude(view.y) * Math.PI / 180) / scale();
    const rough = perPixel * 100;
    const power = 10 ** Math.floor(Math.log10(rough));
    const metres = [5, 2, 1].map((each) => each * power).find((each) => each <= rough);
    const [x, y, length] = [12, height - 14, metres / perPixel];
    drawLine([[x, y - 5], [x, y], [x + length, y], [x + length, y - 5]], colours.ink, 1.5, []);
    const text = metres >= 1000 ? `${metres / 1000} km` : `${metres} m`;
    drawText(text, x + length / 2, y - 6, "11px system-ui, sans-serif", colours.ink);
  };

  const radius = (feature) => {
    const { type, kind, boxes } = feature.properties;
    if (type === "area") {
      return clamp(8 + Math.sqrt(boxes), 10, 26);
    }
    return type === "onu" ? 4 : (kind === "splitter" ? 0.75 : 1) * clamp(view.zoom - 7, 4, 9);
  };

  const drawFeature = (feature) => {
    const { type, name, look, boxes } = feature.properties;
    if (type === "break") {
      const points = (Array.isArray(feature.at[0]) ? feature.at : [feature.at]).map(onScreen);
      if (points.length > 1) {
        drawLine(points, colours.dark, 5, [9, 6]);
      } else {
        outline("break", ...points[0], 15);
        pen.strokeStyle = colours.dark;
        pen.lineWidth = 3;
        pen.stroke();
      }
      return;
    }
    const [x, y] = onScreen(feature.at);
    if (type === "finding") {
      pen.beginPath();
      pen.arc(x, y, clamp(view.zoom - 7, 4, 9) + 6, 0, 2 * Math.PI);
      pen.strokeStyle = colours.weak;
      pen.lineWidth = 2;
      pen.setLineDash([4, 3]);
      pen.stroke();
      pen.setLineDash([]);
      return;
    }
    if (type === "zone") {
      drawText(name, x, y, "600 14px system-ui, sans-serif", colours.muted);
      return;
    }
    drawMark(look, x, y, radius(feature));
    if (type === "area") {
      drawText(String(boxes), x, y + 4, "600 12px system-ui, sans-serif", colours.ink);
    } else if (type === "box" && view.zoom >= NAMES) {
      drawText(name, x, y - radius(feature) - 5, "12px system-ui, sans-serif", colours.ink);
    } else if (type === "onu" && view.zoom >= 17) {
      drawText(name, x, y - 8, "11px system-ui, sans-serif", colours.muted);
    }
  };

  const ORDER = ["break", "finding", "onu", "box", "area", "zone"];
  const paint = () => {
    isDrawing = false;
    const [width, height] = size();
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    if (map.dataset.tiles) {
      drawTiles();
    }
    for (const feature of features) {
      if (feature.before) {
        const isNear = feature.properties.type === "onu";
        drawLine([onScreen(feature.before), onScreen(feature.at)], isNear ? colours.line : colours.muted, isNear ? 1 : 1.5, []);
      }
    }
    for (const type of ORDER) {
      features.filter((feature) => feature.properties.type === type).forEach(drawFeature);
    }
    drawScale();
  };

  const draw = () => {
    if (!isDrawing && view) {
      isDrawing = true;
      window.requestAnimationFrame(paint);
    }
  };

  const addressOf = ({ type, id }) => {
    const page = { box: map.dataset.box, onu: map.dataset.onu, break: map.dataset.outage, finding: map.dataset.finding }[type];
    return page ? page.replace("/0/", `/${id}/`) : "";
  };

  const describe = ({ type, name, look, online, total, state, dbm, boxes }) => {
    switch (type) {
      case "box":
        return `${name} · ${words[look]}${total ? ` · ${words.counted.replace("%s", `${online}/${total}`)}` : ""}`;
      case "onu":
        return `${name} · ${words[state]}${dbm === null ? "" : ` · ${dbm.toFixed(2)} dBm`}`;
      case "area":
        return `${words.boxes.replace("%s", boxes)} · ${words[look]}`;
      case "break":
      case "finding":
        return `${words[type]} · ${name}`;
      default:
        return name;
    }
  };

  const isTrouble = (type) => type === "break" || type === "finding";
  const rank = ({ type, look }) => (isTrouble(type) ? { break: -2, finding: -1 }[type] : WORST.indexOf(look) + (type === "onu" ? 0.5 : 0));

  const fillList = () => {
    const edges = bounds(0);
    const inside = features.filter(({ geometry, properties }) => {
      const [longitude, latitude] = geometry.type === "Point" ? geometry.coordinates : geometry.coordinates[1];
      return properties.type !== "zone" && properties.type !== "area"
        && longitude >= edges.west && longitude <= edges.east && latitude >= edges.south && latitude <= edges.north;
    });
    inside.sort((one, other) => rank(one.properties) - rank(other.properties) || one.properties.name.localeCompare(other.properties.name));
    const shown = inside.slice(0, MOST_LISTED);
    const focused = list.contains(document.activeElement) ? document.activeElement.getAttribute("href") : "";
    list.replaceChildren(...shown.map(({ properties }) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = addressOf(properties);
      link.textContent = isTrouble(properties.type) ? `${words[properties.type]}: ${properties.name}` : properties.name;
      const mark = document.createElement("span");
      mark.className = `box-mark box-${properties.look}`;
      mark.textContent = describe(properties).split(" · ").slice(1).join(" · ");
      item.append(link, " ", ...(isTrouble(properties.type) ? [] : [mark]));
      return item;
    }));
    if (focused) {
      [...list.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
    }
    document.getElementById("map-more").hidden = inside.length <= shown.length;
    document.getElementById("map-nothing").hidden = inside.length > 0;
  };

  const load = async () => {
    const edges = bounds(0.3);
    const query = new URLSearchParams(Object.entries(edges).map(([name, value]) => [name, value.toFixed(6)]));
    if (view.zoom >= CLOSE) {
      query.set("customers", "true");
    }
    asked += 1;
    const number = asked;
    const lost = document.getElementById("map-lost");
    try {
      const answer = await fetch(`${map.dataset.features}?${query}`, { headers: { Accept: "application/json" } });
      if (!answer.ok || answer.redirected) {
        throw new Error(String(answer.status));
      }
      const found = await answer.json();
      if (number !== asked) {
        return;
      }
      features = found.features.map((feature) => ({
        ...feature,
        at: feature.geometry.type === "Point" ? world(feature.geometry.coordinates) : feature.geometry.coordinates.map(world),
        before: feature.properties.before ? world(feature.properties.before) : null,
      }));
      lost.hidden = true;
      document.getElementById("map-cut").hidden = found.is_whole;
      map.dataset.drawn = String(features.length);
      fillList();
      draw();
    } catch {
      lost.hidden = number !== asked;
    }
  };

  const rest = () => {
    const place = [view.zoom.toFixed(2), toLatitude(view.y).toFixed(5), toLongitude(view.x).toFixed(5)].join("/");
    window.history.replaceState(null, "", `#${place}`);
    load();
  };

  const show = (x, y, zoom) => {
    view = { x: clamp(x, 0, 1), y: clamp(y, 0, 1), zoom: clamp(zoom, LEAST, MOST) };
    draw();
    clearTimeout(timer);
    timer = setTimeout(rest, REST_MS);
  };

  const pan = (across, down) => show(view.x - across / scale(), view.y - down / scale(), view.zoom);

  const zoomAt = (by, x, y) => {
    const [width, height] = size();
    const [left, top] = [(x ?? width / 2) - width / 2, (y ?? height / 2) - height / 2];
    const zoom = clamp(view.zoom + by, LEAST, MOST);
    const [before, after] = [scale(), TILE * 2 ** zoom];
    show(view.x + left / before - left / after, view.y + top / before - top / after, zoom);
  };

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  const nearest = (x, y) => {
    let [found, closest] = [null, REACH];
    for (const feature of features) {
      const { type } = feature.properties;
      if (type !== "zone") {
        const points = (Array.isArray(feature.at[0]) ? feature.at : [feature.at]).map(onScreen);
        const middle = points.length > 1 ? [(points[0][0] + points[1][0]) / 2, (points[0][1] + points[1][1]) / 2] : points[0];
        // A box stands in front of a customer, and a break's middle in front of nothing.
        const away = Math.hypot(middle[0] - x, middle[1] - y) - (type === "area" ? radius(feature) : 0);
        if (away < closest) {
          [found, closest] = [feature, away];
        }
      }
    }
    return found;
  };

  const pointers = new Map();
  let dragged = null; // {isDrag, apart, zoom}

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) {
      return;
    }
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    dragged = { isDrag: Boolean(dragged?.isDrag), from: place(event) };
  });

  const apart = () => {
    const [one, two] = [...pointers.values()];
    return Math.max(Math.hypot(one[0] - two[0], one[1] - two[1]), 20);
  };
  const between = () => {
    const [one, two] = [...pointers.values()];
    return [(one[0] + two[0]) / 2, (one[1] + two[1]) / 2];
  };

  canvas.addEventListener("pointermove", (event) => {
    const at = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      const feature = nearest(...at);
      canvas.classList.toggle("over", Boolean(feature));
      tip.textContent = feature ? describe(feature.properties) : tip.dataset.hint;
      return;
    }
    if (pointers.size === 2) {
      const [was, [left, top]] = [apart(), between()];
      pointers.set(event.pointerId, at);
      const [x, y] = between();
      dragged.isDrag = true;
      // What was between the fingers stays between them.
      zoomAt(Math.log2(apart() / was), left, top);
      pan(x - left, y - top);
      return;
    }
    if (dragged.isDrag || Math.hypot(at[0] - dragged.from[0], at[1] - dragged.from[1]) > DRAG_PIXELS) {
      const [left, top] = dragged.isDrag ? before : dragged.from;
      dragged.isDrag = true;
      pointers.set(event.pointerId, at);
      pan(at[0] - left, at[1] - top);
    }
  });

  const open = (feature) => {
    if (feature.properties.type === "area") {
      show(...feature.at, view.zoom + 2);
    } else {
      window.location.assign(addressOf(feature.properties));
    }
  };

  canvas.addEventListener("pointerup", (event) => {
    const isClick = pointers.has(event.pointerId) && !dragged?.isDrag && pointers.size === 1;
    const feature = isClick ? nearest(...place(event)) : null;
    pointers.delete(event.pointerId);
    if (!pointers.size) {
      dragged = null;
    }
    if (feature) {
      open(feature);
    }
  });
  canvas.addEventListener("pointercancel", (event) => {
    pointers.delete(event.pointerId);
    dragged = pointers.size ? dragged : null;
  });

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomAt(clamp(-event.deltaY / 240, -1, 1), ...place(event));
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoomAt(1, ...place(event)));

  const KEYS = {
    ArrowLeft: () => pan(80, 0),
    ArrowRight: () => pan(-80, 0),
    ArrowUp: () => pan(0, 80),
    ArrowDown: () => pan(0, -80),
    "+": () => zoomAt(1),
    "=": () => zoomAt(1),
    "-": () => zoomAt(-1),
    Home: () => { fitWhole(); show(view.x, view.y, view.zoom); },
  };
  canvas.addEventListener("keydown", (event) => {
    if (KEYS[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      KEYS[event.key]();
    }
  });
  for (const button of map.querySelectorAll("[data-key]")) {
    button.addEventListener("click", () => KEYS[button.dataset.key]());
  }

  const fromAddress = () => {
    const [zoom, latitude, longitude] = window.location.hash.slice(1).split("/").map(Number);
    if (Number.isFinite(zoom) && Number.isFinite(latitude) && Number.isFinite(longitude)) {
      view = { x: toX(longitude), y: toY(latitude), zoom: clamp(zoom, LEAST, MOST) };
      return true;
    }
    return false;
  };

  readColours();
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); draw(); });
  new ResizeObserver(draw).observe(canvas);
  if (!fromAddress()) {
    fitWhole();
  }
  load();
  setInterval(() => {
    if (!document.hidden && !pointers.size) {
      load();
    }
  }, REFRESH_MS);
})();
