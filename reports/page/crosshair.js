// One cross-hair over all pictures of a stack: the values at the pointer's time
// stand in the legends, and go back to the steady phase's when it leaves.
(() => {
  "use strict";

  const format = (v, unit) => {
    const a = Math.abs(v);
    const digits = a >= 99.95 || v === 0 ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3;
    const text = v.toFixed(digits).replace(/\B(?=(\d{3})+$)/g, ",");
    return unit ? text + "\u00a0" + unit : text;
  };

  // The index of the interval that covers t: times are the intervals' ends.
  const covering = (times, step, t) => {
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < t) low = middle + 1; else high = middle;
    }
    return low < times.length && times[low] - t < 1.5 * step ? low : -1;
  };

  const attach = (stack) => {
    const data = JSON.parse(stack.querySelector("script").textContent);
    const tracks = [...stack.querySelectorAll(".time")].map((figure, i) => ({
      plot: figure.querySelector(".plot"),
      hair: figure.querySelector(".hair"),
      outputs: [...figure.querySelectorAll("output")],
      steady: [...figure.querySelectorAll("output")].map((o) => o.textContent),
      lines: data.lines[i],
      unit: data.units[i],
    }));
    const when = stack.querySelector(".when output");
    const idle = when.textContent;
    let at = null;

    // Where the time axis lies in a picture that is shown, in pixels of its box.
    const area = (plot) => {
      const svg = [...plot.querySelectorAll("svg")].find((s) => s.getBoundingClientRect().width > 0);
      if (!svg) return null;
      const box = svg.getBoundingClientRect(), outer = plot.getBoundingClientRect();
      const left = box.left - outer.left + box.width * svg.dataset.left;
      return { left, width: box.width * (1 - svg.dataset.left - svg.dataset.right), outer };
    };

    const show = (t) => {
      at = Math.min(Math.max(t, data.from), data.to);
      when.textContent = format(at, "s");
      for (const track of tracks) {
        const a = area(track.plot);
        if (!a) continue;
        track.hair.hidden = false;
        track.hair.style.left = a.left + (at - data.from) / (data.to - data.from) * a.width + "px";
        track.lines.forEach((line, i) => {
          const k = covering(data.times[line.t], data.steps[line.t], at);
          const v = k < 0 ? null : line.v[k];
          track.outputs[i].textContent = v === null ? "no data" : format(v, track.unit);
        });
      }
    };

    const hide = () => {
      at = null;
      when.textContent = idle;
      for (const track of tracks) {
        track.hair.hidden = true;
        track.outputs.forEach((o, i) => { o.textContent = track.steady[i]; });
      }
    };

    for (const track of tracks) {
      const move = (event) => {
        const a = area(track.plot);
        if (a) show(data.from + (event.clientX - a.outer.left - a.left) / a.width * (data.to - data.from));
      };
      track.plot.addEventListener("pointermove", move);
      track.plot.addEventListener("pointerdown", move);
    }
    stack.addEventListener("pointerleave", hide);
    stack.addEventListener("blur", hide);
    stack.addEventListener("keydown", (event) => {
      const step = data.steps[0] * (event.shiftKey ? 10 : 1);
      if (event.key === "ArrowRight") show(at === null ? 0 : at + step);
      else if (event.key === "ArrowLeft") show(at === null ? data.to : at - step);
      else if (event.key === "Escape") hide();
      else return;
      event.preventDefault();
    });
  };

  document.querySelectorAll(".stack").forEach(attach);

  // A link to a folded cell unfolds it.
  const unfold = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();
})();
