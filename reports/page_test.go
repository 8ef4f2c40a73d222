package reports

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"krig/internal/rundir"
)

// browserLimit bounds one page's test, on a machine that does other things too.
const browserLimit = 90 * time.Second

// A browser is one headless Chromium, and what its page said and fetched.
type browser struct {
	ctx context.Context

	mu       sync.Mutex
	console  []string
	requests []string
}

// newBrowser starts one for the test, with a profile of its own.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("chromium is missing: apt-get install chromium")
		}
		t.Skip("chromium is missing: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(func() { end(); stop() })
	b := &browser{ctx: ctx}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		b.console = append(b.console, fmt.Sprintf("console.%s", e.Type))
	case *runtime.EventExceptionThrown:
		b.console = append(b.console, fmt.Sprintf("exception: %s", e.ExceptionDetails.Text))
	case *cdplog.EventEntryAdded:
		b.console = append(b.console, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// open loads a page in a window of this width and colour scheme.
func (b *browser) open(t *testing.T, file string, width int64, scheme string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserLimit)
	t.Cleanup(cancel)
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate("file://"+file)); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// evaluate runs a script in the page.
func evaluate[T any](t *testing.T, ctx context.Context, script string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}

// look is what a page shows.
type look struct {
	Width, Window  float64 // of the content and of the window
	Wider          []string
	Pictures       []picturesLook
	Broken         []string // links to nothing
	Twice          []string // ids that are not unique
	Unnamed        int      // pictures without title or description
	Paper          string
	Contrast       map[string]float64
	HiddenPictures int
}

type picturesLook struct {
	Width, Height float64
	Lines         int
	Smallest      float64 // font size in pixels of the window
}

const lookScript = `(() => {
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
  const out = { Width: document.scrollingElement.scrollWidth, Window: innerWidth, Wider: [], Pictures: [], Broken: [], Twice: [], Unnamed: 0, HiddenPictures: 0, Contrast: {} };
  const inScroller = (e) => e.closest(".scroll, pre, nav");
  for (const e of document.querySelectorAll("main *")) {
    const box = e.getBoundingClientRect();
    if (box.width > 0 && (box.right > innerWidth + 1 || box.left < -1) && !inScroller(e)) out.Wider.push(e.tagName + " " + (e.className.baseVal ?? e.className) + " " + e.textContent.trim().slice(0, 30));
  }
  for (const svg of document.querySelectorAll("svg")) {
    const box = svg.getBoundingClientRect();
    const title = svg.querySelector("title"), desc = svg.querySelector("desc");
    if (!title?.textContent || !desc?.textContent || svg.getAttribute("role") !== "img") out.Unnamed++;
    if (box.width === 0) { out.HiddenPictures++; continue; }
    const drawn = [...svg.querySelectorAll("path")].filter((p) => { const b = p.getBBox(); return b.width + b.height > 0; });
    const scale = box.width / svg.viewBox.baseVal.width;
    const sizes = [...svg.querySelectorAll("text")].map((x) => parseFloat(getComputedStyle(x).fontSize) * scale);
    out.Pictures.push({ Width: box.width, Height: box.height, Lines: drawn.length, Smallest: sizes.length ? Math.min(...sizes) : 0 });
  }
  for (const a of document.querySelectorAll('a[href^="#"]')) if (!document.getElementById(a.getAttribute("href").slice(1))) out.Broken.push(a.getAttribute("href"));
  const ids = new Set();
  for (const e of document.querySelectorAll("[id]")) { if (ids.has(e.id)) out.Twice.push(e.id); ids.add(e.id); }
  const probe = document.body.appendChild(document.createElement("i"));
  const lightness = (name) => {
    probe.style.color = "var(" + name + ")";
    const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = lightness("--paper");
  for (const rule of document.styleSheets[0].cssRules[0].style) {
    if (!rule.startsWith("--")) continue;
    const l = lightness(rule);
    out.Contrast[rule] = (Math.max(l, paper) + 0.05) / (Math.min(l, paper) + 0.05);
  }
  out.Paper = getComputedStyle(document.body).backgroundColor;
  probe.remove();
  return out;
})()`

// contrastWanted is the least contrast of an ink with the paper: what text and
// what lines need to be read. The others only tell areas apart.
func contrastWanted(name string) float64 {
	switch {
	case slices.Contains([]string{"--text", "--muted", "--limit", "--bad", "--accent"}, name):
		return 4.5
	case strings.HasPrefix(name, "--series"), strings.HasPrefix(name, "--broker"), strings.HasPrefix(name, "--worker"), strings.HasPrefix(name, "--other"), name == "--machine":
		return 3
	}
	return 1
}

func TestPage(t *testing.T) {
	b := newBrowser(t)
	for name, make := range variants() {
		run, _ := written(t, make())
		for _, window := range []struct {
			width  int64
			scheme string
			paper  string
		}{{1280, "light", "rgb(255, 255, 255)"}, {390, "dark", "rgb(17, 22, 28)"}, {390, "light", "rgb(255, 255, 255)"}, {1280, "dark", "rgb(17, 22, 28)"}} {
			if name != "troubled" && (window.width == 390) != (window.scheme == "dark") {
				continue // one page in all four windows, the others in two
			}
			t.Run(fmt.Sprintf("%s/%d/%s", name, window.width, window.scheme), func(t *testing.T) {
				b.console, b.requests = nil, nil
				file := run.Path("report.html")
				ctx := b.open(t, file, window.width, window.scheme)
				got := evaluate[look](t, ctx, lookScript)
				if got.Paper != window.paper {
					t.Errorf("the page is %s", got.Paper)
				}
				got.check(t, name)
				b.check(t, file)
			})
		}
	}
}

// check fails the test for what is wrong with a page.
func (l look) check(t *testing.T, variant string) {
	t.Helper()
	if l.Width > l.Window || len(l.Wider) > 0 {
		t.Errorf("%v wide in a window of %v: %q", l.Width, l.Window, l.Wider)
	}
	for i, p := range l.Pictures {
		if p.Width < 200 || p.Height < 40 || p.Lines < 3 || p.Smallest < 8.5 {
			t.Errorf("picture %d: %+v", i, p)
		}
	}
	if variant == "nothing" {
		if len(l.Pictures) != 0 {
			t.Errorf("%d pictures of nothing", len(l.Pictures))
		}
	} else if len(l.Pictures) < 6 {
		t.Errorf("only %d pictures", len(l.Pictures))
	}
	if len(l.Broken) > 0 || len(l.Twice) > 0 || l.Unnamed > 0 {
		t.Errorf("links to nothing %q, ids used twice %q, pictures without words %d", l.Broken, l.Twice, l.Unnamed)
	}
	for name, contrast := range l.Contrast {
		if contrast < contrastWanted(name) {
			t.Errorf("%s has a contrast of %.1f, want %.1f", name, contrast, contrastWanted(name))
		}
	}
}

// check fails the test if the page complained, or fetched anything but itself.
func (b *browser) check(t *testing.T, file string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.console) > 0 {
		t.Errorf("the console says %q", b.console)
	}
	for _, url := range b.requests {
		if url != "file://"+file && !strings.HasPrefix(url, "data:") {
			t.Errorf("the page asks for %s", url)
		}
	}
	if len(b.requests) == 0 {
		t.Error("no request was seen, not even the page's own")
	}
}

// The picture counts of a run whose make-up is known: three cards of all
// cells, one of scaling, and six tracks a repeat that was measured.
func TestDisksOfAHost(t *testing.T) {
	ssd := rundir.Disk{Profile: "ssd", Size: 8 << 30, Write: 30 * mebi, Read: 60 * mebi}
	hdd := rundir.Disk{Profile: "hdd", Size: 4 << 30, Write: 12 * mebi, Read: 24 * mebi}
	free := rundir.Disk{Profile: "none", Size: 8 << 30}
	a := &analysis{}
	for want, disks := range map[string][]rundir.Disk{
		"ssd: writes 30 MiB/s, reads 60 MiB/s, 8 GiB": {ssd},
		"none, 8 GiB": {free},
		"2 disks, ssd, together: writes 60 MiB/s, reads 120 MiB/s, 16 GiB":        {ssd, ssd},
		"2 disks, ssd and hdd, together: writes 42 MiB/s, reads 84 MiB/s, 12 GiB": {ssd, hdd},
		"2 disks, ssd and none, together, 16 GiB":                                 {ssd, free},
	} {
		if got := strings.ReplaceAll(a.diskWords(envHost{Host: rundir.Host{Disks: disks}}), "\u00a0", " "); got != want {
			t.Errorf("%+v: %q, want %q", disks, got, want)
		}
	}
}

func TestPagePictureCount(t *testing.T) {
	b := newBrowser(t)
	run, _ := written(t, disks(1))
	ctx := b.open(t, run.Path("report.html"), 1280, "light")
	got := evaluate[[]int](t, ctx, `[document.querySelectorAll(".card svg").length, document.querySelectorAll(".stack").length, document.querySelectorAll(".stack svg.wide").length, document.querySelectorAll(".stack svg.narrow").length]`)
	if want := []int{3, 6, 36, 36}; !slices.Equal(got, want) {
		t.Errorf("cards, stacks, wide and narrow pictures: %v, want %v", got, want)
	}
}

func TestCrosshair(t *testing.T) {
	b := newBrowser(t)
	run, _ := written(t, troubled())
	ctx := b.open(t, run.Path("report.html"), 1280, "light")
	const state = `(() => { const s = document.querySelector("#cell-1 .stack"); return {
		hairs: [...s.querySelectorAll(".hair")].filter((h) => !h.hidden).length, plots: s.querySelectorAll(".plot").length,
		lefts: [...new Set([...s.querySelectorAll(".hair")].map((h) => h.style.left))].length,
		when: s.querySelector(".when output").textContent, values: [...s.querySelectorAll(".time output")].map((o) => o.textContent) } })()`
	type shown struct {
		Hairs  int      `json:"hairs"`
		Plots  int      `json:"plots"`
		Lefts  int      `json:"lefts"`
		When   string   `json:"when"`
		Values []string `json:"values"`
	}
	idle := evaluate[shown](t, ctx, state)
	if idle.Hairs != 0 || idle.When != "steady phase" || !strings.HasSuffix(idle.Values[0], "MB/s") {
		t.Errorf("before: %+v", idle)
	}
	// A pointer at a quarter of the plotting area of the second picture.
	const at = `((part) => { const p = document.querySelectorAll("#cell-1 .stack .plot")[1], svg = p.querySelector("svg.wide"), b = svg.getBoundingClientRect();
		const left = b.left + b.width * svg.dataset.left, width = b.width * (1 - svg.dataset.left - svg.dataset.right);
		p.dispatchEvent(new PointerEvent("pointermove", { clientX: left + part * width, bubbles: true })); return true; })`
	evaluate[bool](t, ctx, at+"(0.25)")
	over := evaluate[shown](t, ctx, state)
	if over.Hairs != over.Plots || over.Plots != 6 || over.Lefts != 1 || over.When == idle.When || slices.Equal(over.Values, idle.Values) {
		t.Errorf("over a picture: %+v", over)
	}
	// At a third it is in the hole of b1: samples 10 to 14 of the collectors.
	evaluate[bool](t, ctx, at+"(0.4)")
	if hole := evaluate[shown](t, ctx, state); !slices.Contains(hole.Values, "no data") {
		t.Errorf("in a hole: %+v", hole)
	}
	evaluate[bool](t, ctx, `document.querySelector("#cell-1 .stack").dispatchEvent(new PointerEvent("pointerleave")), true`)
	if after := evaluate[shown](t, ctx, state); after.Hairs != 0 || !slices.Equal(after.Values, idle.Values) {
		t.Errorf("after: %+v", after)
	}
	evaluate[bool](t, ctx, `document.querySelector("#cell-1 .stack").focus(), true`)
	if err := chromedp.Do(ctx, chromedp.KeyEvent(kb.ArrowRight)); err != nil {
		t.Fatal(err)
	}
	if key := evaluate[shown](t, ctx, state); key.Hairs != 6 {
		t.Errorf("by keys: %+v", key)
	}
	b.check(t, run.Path("report.html"))
}
