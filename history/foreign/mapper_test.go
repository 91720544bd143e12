package foreign_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
)

// events reads every event of a text.
func events(text string, o foreign.Options) ([]history.Event, foreign.Info, error) {
	var got []history.Event
	info, err := foreign.ReadEvents(strings.NewReader(text), "x", o, func(e *history.Event, _ int) error {
		got = append(got, e.Clone())
		return nil
	})
	return got, info, err
}

func TestFormatsReadTheSameEvents(t *testing.T) {
	want := []history.Event{
		{Index: 0, Time: 10, Type: history.Invoke, Process: 3, F: history.Acquire},
		{Index: 1, Time: 20, Type: history.OK, Process: 3, F: history.Acquire, Value: &history.Value{Token: 7}},
		{Index: 2, Time: 30, Type: history.Info, Process: history.Nemesis, F: "start",
			Value: &history.Value{Fault: &history.FaultValue{Phase: history.Noted, Detail: "cut"}}},
		{Index: 3, Time: 40, Type: history.Invoke, Process: 3, F: history.Release},
		{Index: 4, Time: 50, Type: history.Info, Process: 3, F: history.Release,
			Error: &history.Error{Code: "timeout", Text: "no answer"}},
	}
	maps := []string{
		`{:index 0, :time 10, :type :invoke, :process 3, :f :acquire, :value nil}`,
		`#jepsen.history.Op{:type :ok :f :lock :process 3 :time 20 :value {:fence 7}}`,
		`{:process :nemesis :type :info :f :start :time 30 :value "cut" :clock-offsets {"n1" 0.5}}`,
		`{:process 3N, :type :invoke, :f "unlock", :time 40.0}`,
		`{:process "3", :type :info, :f release, :time 50, :error [:timeout "no answer"]} ; done`,
	}
	objects := []string{
		`{"index":0,"time":10,"type":"invoke","process":3,"f":"acquire","value":null}`,
		`{"type":"ok","f":"lock","process":3,"time":20,"value":{"fence":7}}`,
		`{"process":"nemesis","type":"info","f":"start","time":30,"value":"cut"}`,
		`{"process":3,"type":":invoke","f":":unlock","time":40.0}`,
		`{"process":3,"type":"info","f":"release","time":50,"error":["timeout","no answer"]}`,
	}
	tests := []struct {
		name, text string
		format     foreign.Format
	}{
		{"a map per line", strings.Join(maps, "\n"), foreign.FormatEDN},
		{"a vector", "; a comment\n[" + strings.Join(maps, "\n ") + "\n]\n", foreign.FormatEDN},
		{"a list", "(" + strings.Join(maps, "\n ") + "\n)", foreign.FormatEDN},
		{"an array", "[" + strings.Join(objects, ",\n") + "]", foreign.FormatJSON},
		{"objects one after the other", strings.Join(objects, " "), foreign.FormatJSON},
		{"indented objects", strings.ReplaceAll(strings.Join(objects, "\n"), `,"`, ",\n  \""), foreign.FormatJSON},
		{"byte order mark", "\xef\xbb\xbf" + strings.Join(maps, "\n"), foreign.FormatEDN},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, info, err := events(test.text, foreign.Options{})
			if err != nil || info.Format != test.format || len(info.Problems) > 0 {
				t.Fatalf("err %v, info %+v", err, info)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTSV(t *testing.T) {
	text := "INFO  jepsen.core - Setting up\nINFO  jepsen.util - 0\t:invoke\t:acquire\tnil\n" +
		"1\t:info\t:release\t{:fence 3}\t[:timeout \"gone\"]\n:nemesis\t:info\t:start\tCut off {n1\n0\t:ok\t:acqu"
	got, info, err := events(text, foreign.Options{})
	if err != nil || info.Format != foreign.FormatTSV {
		t.Fatalf("err %v, info %+v", err, info)
	}
	want := []history.Event{
		{Index: 0, Time: 0, Type: history.Invoke, Process: 0, F: history.Acquire},
		{Index: 1, Time: 1, Type: history.Info, Process: 1, F: history.Release, Value: &history.Value{Token: 3},
			Error: &history.Error{Code: "timeout", Text: "gone"}},
		{Index: 2, Time: 2, Type: history.Info, Process: history.Nemesis, F: "start",
			Value: &history.Value{Fault: &history.FaultValue{Phase: history.Noted, Detail: "Cut off {n1"}}},
		{Index: 3, Time: 3, Type: history.OK, Process: 0, F: "acqu"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	var notes []string
	for _, p := range info.Problems {
		notes = append(notes, p.Text)
	}
	wantNotes := []string{"ignored lines of the log that are not operations: 1",
		"events without a time: 4; they count as 1 ns apart, so durations have no meaning"}
	if diff := cmp.Diff(wantNotes, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestKeyOfTheInvocation: a value in the place of the key of a completion is not its key, unless the operation is about
// several.
func TestKeyOfTheInvocation(t *testing.T) {
	const dialect = "value,query-params.1"
	for _, test := range []struct {
		name, key, text string
		want            []string
	}{
		{"value", "value", `{:f :lock :type :invoke :process 0 :value "bob"} {:f :lock :type :ok :process 0 :value ""}`,
			[]string{"bob", "bob"}},
		{"another value", "value", `{:f :lock :type :invoke :process 0 :value "bob"} {:f :lock :type :ok :process 0 :value 7}
			{:f :unlock :type :invoke :process 0 :value nil} {:f :unlock :type :ok :process 0 :value true}`,
			[]string{"bob", "bob", "bob", "bob"}},
		{"none", "value", `{:f :lock :type :invoke :process 0 :value nil} {:f :lock :type :ok :process 0 :value "t1"}`,
			[]string{"", ""}},
		{"the first path", dialect, `{:f :lock :type :invoke :process 0 :value "bob" :query-params "n1,joe"}`, []string{"bob"}},
		{"the second path", dialect, `{:f :lock :type :invoke :process 0 :value nil :query-params "n1,joe"}`, []string{"joe"}},
		{"several keys", "", `{:f :acquire :type :invoke :process 0 :key "a"}
			{:f :acquire :type :invoke :process 0 :key "b" :value {:part true}}
			{:f :acquire :type :ok :process 0 :key "a"} {:f :acquire :type :ok :process 0 :key "b"}`,
			[]string{"a", "b", "a", "b"}},
	} {
		got, _, err := events(test.text, foreign.Options{Key: test.key})
		var keys []string
		for _, e := range got {
			keys = append(keys, e.Key)
		}
		if diff := cmp.Diff(test.want, keys); err != nil || diff != "" {
			t.Errorf("%s: %v, keys (-want +got):\n%s", test.name, err, diff)
		}
	}
}

func TestAssumptions(t *testing.T) {
	const ok, fail = history.OK, history.Fail
	type result struct {
		Type  history.Type
		Held  bool
		Token uint64
		Zero  bool
		Ended bool // the lease, before
	}
	tests := []struct {
		name, line      string
		assume          foreign.Assumption
		strict, assumed result
		affected        int
	}{
		{"lock refused", `{"type":"ok","f":"lock","value":""}`, foreign.EmptyIsFail, result{Type: ok}, result{Type: fail}, 1},
		{"lock refused by nil", `{"type":"ok","f":"lock","value":null}`, foreign.EmptyIsFail, result{Type: ok}, result{Type: fail}, 0},
		{"lock granted", `{"type":"ok","f":"lock","value":"t"}`, foreign.EmptyIsFail, result{Type: ok}, result{Type: ok}, 0},
		{"lock without a value", `{"type":"ok","f":"lock"}`, foreign.EmptyIsFail, result{Type: ok}, result{Type: ok}, 0},
		{"unlock of nothing", `{"type":"ok","f":"unlock","value":"false"}`, foreign.EmptyIsFail, result{Type: ok}, result{Type: fail, Held: true}, 1},
		{"unlock without a value", `{"type":"ok","f":"unlock","value":null}`, foreign.EmptyIsFail, result{Type: ok}, result{Type: ok}, 0},
		{"release not held", `{"type":"fail","f":"release","error":"not-held"}`, foreign.NotHeldEnds, result{Type: fail, Held: true}, result{Type: fail, Ended: true}, 1},
		{"release not owner", `{"type":"fail","f":"release","error":["x","Lock: not lock owner"]}`, foreign.NotHeldEnds, result{Type: fail, Held: true}, result{Type: fail, Ended: true}, 1},
		{"release out of reach", `{"type":"fail","f":"release","error":"no-leader"}`, foreign.NotHeldEnds, result{Type: fail, Held: true}, result{Type: fail, Held: true}, 0},
		{"renewal not found", `{"type":"fail","f":"extend","error":"lease not found"}`, foreign.NotHeldEnds, result{Type: fail, Held: true}, result{Type: fail, Ended: true}, 1},
		{"release says so itself", `{"type":"fail","f":"release","held":false}`, foreign.NotHeldEnds, result{Type: fail}, result{Type: fail}, 0},
		{"fence 0", `{"type":"ok","f":"acquire","value":{"fence":0}}`, foreign.ZeroIsNone, result{Type: ok, Zero: true}, result{Type: ok}, 1},
		{"fence 0 of a release", `{"type":"ok","f":"release","value":{"fence":0}}`, foreign.ZeroIsNone, result{Type: ok}, result{Type: ok}, 0},
		{"fence 5", `{"type":"ok","f":"acquire","value":{"fence":5}}`, foreign.ZeroIsNone, result{Type: ok, Token: 5}, result{Type: ok, Token: 5}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			line := strings.Replace(test.line, "{", `{"process":1,"time":1,`, 1)
			for _, o := range []foreign.Options{
				{Format: "json"}, {Format: "json", Assume: []foreign.Assumption{test.assume}},
			} {
				got, info, err := events(line, o)
				if err != nil || len(got) != 1 {
					t.Fatalf("err %v, events %+v", err, got)
				}
				e := got[0]
				is := result{Type: e.Type, Held: e.Held}
				if e.Value != nil {
					is.Token, is.Zero, is.Ended = e.Value.Token, e.Value.Zero, e.Value.Lapsed
				}
				want := test.strict
				if len(o.Assume) > 0 {
					want = test.assumed
				}
				if is != want || info.Affected[test.assume] != test.affected {
					t.Errorf("assuming %v: got %+v, want %+v; %d events affected, want %d",
						o.Assume, is, want, info.Affected[test.assume], test.affected)
				}
			}
		})
	}
}

func TestNumbersReused(t *testing.T) {
	text := `{:process 1 :type :invoke :f :acquire} {:process 1 :type :info :f :acquire}
		{:process 1 :type :invoke :f :acquire} {:process 1 :type :ok :f :acquire} {:process 1 :type :invoke :f :release}`
	for _, test := range []struct {
		options  foreign.Options
		owners   []string
		problems int
	}{
		{foreign.Options{}, []string{"process 1"}, 2}, // and that there are no times
		{foreign.Options{Assume: []foreign.Assumption{foreign.NumbersReused}}, []string{"process 1", "process 1, incarnation 2"}, 1},
	} {
		h, _, err := foreign.Read(strings.NewReader(text), "x", test.options)
		if err != nil || len(h.Problems) != test.problems || !cmp.Equal(h.Owners, test.owners) {
			t.Errorf("assuming %v: err %v, problems %v, owners %q", test.options.Assume, err, h.Problems, h.Owners)
		}
	}
}

func TestOwnersAndKeysAndTimes(t *testing.T) {
	text := `[{:process 0 :type :invoke :f :acquire :time 1.5 :value ["k" "u1"]}
		{:process 0 :type :ok :f :acquire :time 2 :value ["k" {:client "n1" :fence "9"}]}
		{:process 0 :type :invoke :f :release :time 3}
		{:process 0 :type :info :f :release :time 4}
		{:process "worker-7" :type :invoke :f :acquire :time 5 :value ["j" "u2"]}
		{:process 5 :type :invoke :f :try-lock :time 6 :value ["k"]}]`
	o := foreign.Options{
		Owner: "value.1.client", Key: "value.0", Token: "value.1.fence", Unit: time.Millisecond, Clients: 5,
	}
	// An invocation has no field at the path of the token, which is not an error.
	h, _, err := foreign.Read(strings.NewReader(text), "x", o)
	if err != nil {
		t.Fatal(err)
	}
	type span struct {
		Op         history.Op
		Key, Owner string
		Call       time.Duration
		Token      uint64
	}
	var got []span
	for _, s := range h.Spans {
		got = append(got, span{s.Op, h.Keys[s.Key], h.Owners[s.Owner], s.Call, s.Token})
	}
	ms := time.Millisecond
	want := []span{
		{history.OpAcquire, "k", "n1", 3 * ms / 2, 9},
		{history.OpRelease, "k", "n1", 3 * ms, 0},
		{history.OpAcquire, "j", "process 1000000", 5 * ms, 0},
		{history.OpTry, "k", "n1", 6 * ms, 0}, // process 5 of 5 clients is client 0, whose owner is n1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

func TestWriteEDNIsJepsens(t *testing.T) {
	events := []history.Event{
		{Index: 0, Time: 5, Type: history.Invoke, Process: 3, F: history.Acquire, Key: "orders"},
		{Index: 1, Time: 9, Type: history.OK, Process: 3, F: history.Acquire, Value: &history.Value{Owner: "o\"1", Token: 4}},
		{Index: 2, Time: 11, Type: history.Fail, Process: 3, F: history.Release,
			Error: &history.Error{Code: "not-held", Text: "lease ended\n"}},
		{Index: 3, Time: 12, Type: history.Info, Process: history.Nemesis, F: "kill",
			Value: &history.Value{Fault: &history.FaultValue{ID: 1, Phase: history.TookEffect, Target: "n1"}}},
	}
	want := `{:index 0, :time 5, :type :invoke, :process 3, :f :acquire, :value nil, :key "orders"}
{:index 1, :time 9, :type :ok, :process 3, :f :acquire, :value {:owner "o\"1", :token 4}}
{:index 2, :time 11, :type :fail, :process 3, :f :release, :value nil, :error [:not-held "lease ended\n"], :held false}
{:index 3, :time 12, :type :info, :process :nemesis, :f :kill, :value {:fault {:id 1, :phase :effect, :target "n1"}}}
`
	var out bytes.Buffer
	if err := foreign.WriteEDN(&out, events); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("EDN (-want +got):\n%s", diff)
	}
	if err := foreign.WriteEDN(fullDisk{}, events); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
}

// fullDisk takes no bytes.
type fullDisk struct{}

var errFull = errors.New("no space left on device")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func seeds(f *testing.F) {
	files, err := filepath.Glob("../../cmd/chaos/testdata/histories/*")
	if err != nil || len(files) < 5 {
		f.Fatalf("seeds: %v %v", files, err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint8(0))
	}
	f.Add([]byte("{\"index\":0,\"time\":5,\"type\":\"invoke\",\"process\":1,\"f\":\"try\",\"key\":\"k\"}\n"), uint8(1))
	f.Add([]byte("client 0 acquire k 1-2 ok"), uint8(5))
}

// FuzzRead: no input causes a panic or an inconsistent history.
func FuzzRead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		formats := foreign.Formats()
		o := foreign.Options{Format: formats[int(n)%len(formats)], Owner: "value.client"}
		for _, a := range foreign.Assumptions() {
			o.Assume = append(o.Assume, a.Name)
		}
		for _, o := range []foreign.Options{o, {Format: o.Format}} {
			h, info, err := foreign.Read(bytes.NewReader(b), "x", o)
			if err != nil && err.Error() == "" {
				t.Fatal("an error without a text")
			}
			if err != nil {
				continue
			}
			for _, s := range h.Spans {
				if s.Return < s.Call || int(s.Owner) >= len(h.Owners) || int(s.Key) >= len(h.Keys) {
					t.Fatalf("span %+v of a history in %s", s, info.Format)
				}
			}
		}
	})
}

// FuzzEDNRoundTrip: events read from any text survive EDN.
func FuzzEDNRoundTrip(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		first, _, err := events(string(b), foreign.Options{Format: foreign.Formats()[int(n)%len(foreign.Formats())]})
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := foreign.WriteEDN(&out, first); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		second, _, err := events(text, foreign.Options{Format: foreign.FormatEDN})
		if err != nil || len(second) != len(first) {
			t.Fatalf("%q: %d events written, %d read: %v", text, len(first), len(second), err)
		}
		out.Reset()
		if err := foreign.WriteEDN(&out, second); err != nil {
			t.Fatal(err)
		}
		third, _, err := events(out.String(), foreign.Options{Format: foreign.FormatEDN})
		if err != nil || !cmp.Equal(second, third) {
			t.Fatalf("%q: %v\n%s", text, err, cmp.Diff(second, third))
		}
	})
}

func ExampleWriteEDN() {
	events := []history.Event{{Time: 5, Type: history.Invoke, Process: 3, F: history.Acquire}}
	if err := foreign.WriteEDN(os.Stdout, events); err != nil {
		fmt.Println(err)
	}
	// Output: {:index 0, :time 5, :type :invoke, :process 3, :f :acquire, :value nil}
}
