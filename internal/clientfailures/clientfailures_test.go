package clientfailures_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/clientfailures"
)

const (
	violation = `{"index":2,"time":2000000000,"type":"info","process":1,"f":"crash","error":["client-protocol",` +
		`"output line 3: expected one JSON object per line in \"oops\""]}` + "\n"
	another = `{"index":3,"time":2100000000,"type":"info","process":2,"f":"crash","error":["client-protocol","other"]}` + "\n"
	exited  = `{"index":4,"time":2200000000,"type":"info","process":3,"f":"crash","error":["client-exited","exit status 3"]}` +
		"\n"
	again = `{"index":5,"time":2400000000,"type":"info","process":5,"f":"crash","error":["client-exited","exit status 3"]}` +
		"\n"
	killed = `{"index":5,"time":2300000000,"type":"info","process":4,"f":"crash","error":["client-killed","it was killed"]}` +
		"\n"
	silence = `{"index":6,"time":1000000000,"type":"invoke","process":0,"f":"work","key":"k"}` + "\n" +
		`{"index":7,"time":6000000000,"type":"info","process":0,"f":"work","key":"k","error":["client-timeout","x"]}` + "\n"
	granted = `{"index":0,"time":1000000,"type":"invoke","process":1,"f":"acquire","key":"k"}` + "\n" +
		`{"index":1,"time":2000000,"type":"ok","process":1,"f":"acquire","key":"k"}` + "\n"
)

// TestDescribe: clients that did not keep to the protocol are named with the line that one of them sent, a client that
// a fault killed is not, and the verdict does not advise more clients where the clients ended.
func TestDescribe(t *testing.T) {
	const protocol = `client 1 violated the protocol at 2.000 s and was killed: output line 3: expected one JSON object ` +
		`per line in "oops"`
	for _, test := range []struct {
		text string
		want []string
	}{
		{granted, nil},
		{granted + violation, []string{protocol}},
		{granted + violation + another, []string{protocol + " (so did client 2, for other reasons)"}},
		{granted + exited + again, []string{"clients 3 and 5 exited unexpectedly, the first at 2.200 s: exit status 3"}},
		{granted + exited, []string{"client 3 exited unexpectedly at 2.200 s: exit status 3"}},
		{granted + killed, nil},
		{granted + silence, []string{"client 0 did not reply for 5.00 s to the work of k that it was sent at 1.000 s"}},
	} {
		h, err := history.ReadAll(strings.NewReader(test.text), "history.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, clientfailures.Describe(h)); diff != "" {
			t.Errorf("clauses (-want +got):\n%s", diff)
		}
		for _, got := range []string{checker.Judge(h, checker.Options{}).Sentence, streamed(t, test.text)} {
			if named := len(test.want) > 0; strings.Contains(got, "more clients") == named ||
				named && !strings.Contains(got, test.want[0]) {
				t.Errorf("%s", got)
			}
		}
	}
}

// TestManyEnded: of many clients that ended, twenty are named.
func TestManyEnded(t *testing.T) {
	h := &history.History{}
	for p := range history.Process(32) {
		h.Exits = append(h.Exits, history.Exit{Process: p, Time: 1, Error: history.Error{Code: history.CodeExited}})
	}
	got := clientfailures.Ended(h)
	if len(got) != 1 || !strings.HasPrefix(got[0], "clients 0, 1, 2,") ||
		!strings.Contains(got[0], " 18, 19 and 12 more exited unexpectedly") {
		t.Errorf("%q", got)
	}
}

// streamed is the sentence of a stream about the history in text.
func streamed(t *testing.T, text string) string {
	t.Helper()
	s := checker.NewStream(checker.Options{}, 0)
	if _, err := history.Scan(strings.NewReader(text), "text", s.Add); err != nil {
		t.Fatal(err)
	}
	return s.Judgement().Sentence
}
