package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// checkLarge judges the history at path as if it were larger than the limit.
func checkLarge(t *testing.T, path, flags string) (code int, stdout, stderr string) {
	t.Helper()
	var c cobra.Command
	var o checkOptions
	o.json = true
	o.judgingFlags.add(&c)
	o.readingFlags.add(&c)
	if err := c.ParseFlags(strings.Fields(flags)); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	s := streams{in: strings.NewReader(""), out: &out, err: &errs}
	code = exitCode(check(s, path, o), s)
	return code, out.String(), errs.String()
}

// turns is a history in which two clients take turns at a lock, while the other one waits for it; size is how many hold
// it at once at the end. INDEX in last stands for the index of that event.
func turns(n, size int, last string) string {
	var b strings.Builder
	line := func(at int, typ string, process int, f, value string) {
		fmt.Fprintf(&b, `{"index":%d,"time":%d,"type":%q,"process":%d,"f":%q,"key":"k"%s}`+"\n",
			strings.Count(b.String(), "\n"), at*1_000_000, typ, process, f, value)
	}
	owner := func(c int) string { return fmt.Sprintf(`,"value":{"owner":"o%d"}`, c) }
	line(0, "invoke", 0, "acquire", owner(0))
	for i := range n {
		holds, waits := i%2, 1-i%2
		line(10*i+1, "ok", holds, "acquire", fmt.Sprintf(`,"value":{"token":%d}`, i+1))
		line(10*i+2, "invoke", waits, "acquire", owner(waits))
		line(10*i+3, "invoke", holds, "release", owner(holds))
		line(10*i+4, "ok", holds, "release", "")
	}
	line(10*n+1, "ok", n%2, "acquire", fmt.Sprintf(`,"value":{"token":%d}`, n+1))
	if size > 1 {
		line(10*n+2, "invoke", 1-n%2, "acquire", owner(1-n%2))
		line(10*n+3, "ok", 1-n%2, "acquire", fmt.Sprintf(`,"value":{"token":%d}`, n+2))
	}
	return b.String() + strings.ReplaceAll(last, "INDEX", strconv.Itoa(strings.Count(b.String(), "\n")))
}

// TestLargeIsJudgedAsStream: a stream judges a large history where it has the verdict of the whole check; otherwise
// that judges, and the reason is printed. Each has the verdict of the whole check.
func TestLargeIsJudgedAsStream(t *testing.T) {
	const fault = `{"index":INDEX,"time":5000000,"type":"info","process":"nemesis","f":"x","value":{"fault":{"id":1,` +
		`"phase":"inject","target":"n1"}}}` + "\n"
	const lost = `{"index":INDEX,"time":1000000000,"type":"info","process":0,"f":"lost","key":"k",` +
		`"value":{"owner":"o0","age_ns":5000000}}` + "\n"
	const both, stream = "--property exclusion --property fencing", "was judged as a stream"
	tests := []struct {
		text, flags string
		code        int
		says        string
	}{
		{turns(8, 1, ""), both, exitSafe, stream},
		{turns(8, 1, ""), "--property exercised", exitSafe, stream},
		{turns(8, 2, ""), both, exitUnsafe, stream},
		{turns(8, 2, fault), both, exitUnsafe, stream},
		{turns(8, 2, ""), "--property fencing", exitSafe, stream},
		{historyText(t, "two-holders.edn"), both, exitUnsafe, stream},
		{turns(1, 1, ""), both, exitInconclusive, "in memory: a stream leaves it undecided (the run tested too little"},
		{turns(8, 1, fault), both, exitInconclusive, "in memory: a stream does not judge whether faults took effect"},
		{turns(8, 1, lost), both, exitSafe, "in memory: a stream does not know which requests met a hold that a"},
		{turns(8, 1, ""), both + " --permits k=1", exitSafe, "in memory: --permits may name a key that the history lacks"},
		{turns(8, 1, ""), both + " --property damage", exitSafe, "in memory: --stream cannot judge damage, which"},
		{turns(8, 1, ""), "", exitSafe, "in memory: a stream cannot judge damage, honesty"},
		{historyText(t, "etcd.edn"), both + " --dialect etcd", exitSafe, "in memory: a stream does not find other readings"},
		{turns(8, 1, ""), both + " --owner value.owner", exitSafe, "in memory: a stream does not find other readings"},
		{"clients 3\nclient 0 acquire k 1-2 ok\n", both, exitInconclusive, ""},
		{"neither", both, exitUsage, "neither"},
	}
	for _, test := range tests {
		path := filepath.Join(t.TempDir(), "h")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := checkLarge(t, path, test.flags)
		if code != test.code || !strings.Contains(errs, test.says) || test.says == "" && errs != "" {
			t.Errorf("%s: exit %d, want %d, and %q in\n%s%s", test.flags, code, test.code, test.says, errs, out)
		}
		args := append([]string{"check", path, "--json", "--stream=false"}, strings.Fields(test.flags)...)
		whole, wholeOut, errs := chaos(args...)
		if whole != code || strings.Contains(errs, "stream") {
			t.Errorf("%s: exit %d, of the whole check %d: %s", test.flags, code, whole, errs)
		}
		if code == exitUsage {
			continue
		}
		var j, of judged
		if err := errors.Join(json.Unmarshal([]byte(out), &j), json.Unmarshal([]byte(wholeOut), &of)); err != nil {
			t.Fatal(err)
		}
		if j.Verdict != of.Verdict || j.Class != of.Class || of.Stream || j.Stream != (test.says == stream) {
			t.Errorf("%s: %s %q, stream %v; of the whole check %s %q", test.flags, j.Verdict, j.Class, j.Stream, of.Verdict,
				of.Class)
		}
	}
}

// historyText is a history of testdata.
func historyText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/histories", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestLargeFile judges a sparse file, of which only the first line is read.
func TestLargeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.WriteFile(path, []byte("{\"index\":\"x\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int64]bool{largeHistory: false, largeHistory + 1: true} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		code, _, errs := chaos("check", "--format", "jsonl", path)
		if code != exitUsage || strings.Contains(errs, "256 MiB and is judged in memory: a stream") != want {
			t.Errorf("%d bytes: exit %d, %s", size, code, errs)
		}
		if _, _, errs := chaos("check", "--stream=false", "--format", "jsonl", path); strings.Contains(errs, "judged") {
			t.Errorf("%d bytes: %s", size, errs)
		}
	}
}
