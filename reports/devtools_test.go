package reports

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// devtools drives a browser through the Chrome DevTools Protocol, on a pipe: a message is JSON and a zero byte.
type devtools struct {
	in      *os.File
	replies *os.File
	out     *bufio.Reader // of replies
	id      int
	session string // of the open page
	target  string // the open page; empty: none
	console []string
}

// message is a request, a reply or an event of the protocol.
type message struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// pageOptions are how a test opens a page.
type pageOptions struct {
	dark  bool
	width int // of the window; 0: 1280
}

// sharedDevtools serves all tests, because a browser takes a second of CPU time to start; nil: none is running.
// TestMain ends them.
var sharedDevtools struct {
	sync.Mutex
	*devtools
	end func() error
}

// startDevtools starts a browser, or takes an earlier test's if it has passed. Tests take turns, and each may use it
// for browserLimit.
func startDevtools(t *testing.T) *devtools {
	t.Helper()
	shared := &sharedDevtools
	shared.Lock()
	t.Cleanup(shared.Unlock)
	if shared.devtools == nil {
		shared.devtools, shared.end = newDevtools(t)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if err := endDevtools(); err != nil {
			t.Error(err)
		}
	})
	if err := shared.replies.SetReadDeadline(time.Now().Add(browserLimit)); err != nil {
		t.Fatal(err)
	}
	return shared.devtools
}

// newDevtools starts a browser.
func newDevtools(t *testing.T) (d *devtools, end func() error) {
	t.Helper()
	cmd, remove, err := newBrowser(context.Background(), "--remote-debugging-pipe", "about:blank")
	if err != nil {
		t.Fatal(err)
	}
	if remove == nil {
		t.Skip(noBrowser)
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // the pipe is the file descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(errors.Join(err, remove()))
	}
	theirIn.Close()
	theirOut.Close()
	return &devtools{in: in, replies: out, out: bufio.NewReader(out)}, func() error {
		in.Close()
		out.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return remove()
	}
}

// endDevtools ends the browser of the tests, if one is running.
func endDevtools() error {
	if sharedDevtools.devtools == nil {
		return nil
	}
	sharedDevtools.devtools = nil
	return sharedDevtools.end()
}

// call sends a request and waits for its reply; it keeps the output of the page to its console in between.
func (d *devtools) call(t *testing.T, method string, params, result any) {
	t.Helper()
	d.id++
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(message{ID: d.id, Method: method, Session: d.session, Params: text})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.in.Write(append(text, 0)); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	for {
		line, err := d.out.ReadBytes(0)
		if err != nil {
			t.Fatalf("%s: the browser ended: %v", method, err)
		}
		var m message
		if err := json.Unmarshal(line[:len(line)-1], &m); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if m.Method == "Runtime.consoleAPICalled" || m.Method == "Runtime.exceptionThrown" || m.Method == "Log.entryAdded" {
			d.console = append(d.console, string(m.Params))
		}
		if m.ID != d.id {
			continue
		}
		if m.Error != nil {
			t.Fatalf("%s: %s", method, m.Error)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

type params map[string]any

// open opens a page of that text and waits until its script, if it has one, is ready.
func (d *devtools) open(t *testing.T, page string, o pageOptions) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	d.session, d.console = "", nil
	if d.target != "" {
		d.call(t, "Target.closeTarget", params{"targetId": d.target}, nil)
	}
	var target struct{ TargetID string }
	d.call(t, "Target.createTarget", params{"url": "about:blank"}, &target)
	d.target = target.TargetID
	var attached struct{ SessionID string }
	d.call(t, "Target.attachToTarget", params{"targetId": target.TargetID, "flatten": true}, &attached)
	d.session = attached.SessionID
	width := 1280
	if o.width > 0 {
		width = o.width
	}
	d.call(t, "Emulation.setDeviceMetricsOverride", params{"width": width, "height": 1600, "deviceScaleFactor": 1,
		"mobile": false}, nil)
	scheme := "light"
	if o.dark {
		scheme = "dark"
	}
	d.call(t, "Emulation.setEmulatedMedia", params{"features": []params{{"name": "prefers-color-scheme",
		"value": scheme}}}, nil)
	d.call(t, "Runtime.enable", params{}, nil)
	d.call(t, "Log.enable", params{}, nil)
	d.call(t, "Page.enable", params{}, nil)
	d.call(t, "Page.navigate", params{"url": "file://" + path}, nil)
	for ready := false; !ready; {
		d.run(t, `
			for (let frames = 0; frames < 100; frames++) {
				if (location.href !== 'about:blank' && document.readyState === 'complete' &&
					(!document.getElementById('data') || document.documentElement.dataset.ready)) return true;
				await frame();
			}
			return false`, &ready)
		for _, text := range d.console {
			if strings.Contains(text, "exceptionDetails") {
				t.Fatalf("the script of the page failed: %s", text)
			}
		}
	}
}

// run evaluates the body of an asynchronous function in the page and decodes its result.
func (d *devtools) run(t *testing.T, body string, result any) {
	t.Helper()
	script := `(async function () {
		const press = (el, key) => el.dispatchEvent(new KeyboardEvent('keydown', {key: key, bubbles: true,
			cancelable: true}));
		const frame = () => new Promise(function (done) { requestAnimationFrame(function () { setTimeout(done, 0); }); });
		const $ = (q) => document.querySelector(q);
		` + body + `
	})()`
	var reply struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	d.call(t, "Runtime.evaluate", params{"expression": script, "awaitPromise": true, "returnByValue": true,
		"userGesture": true}, &reply)
	if reply.ExceptionDetails != nil {
		t.Fatalf("in the page: %s", reply.ExceptionDetails)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(reply.Result.Value, result); err != nil {
		t.Fatalf("%v: %s", err, reply.Result.Value)
	}
}
