package foreign

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/history/internal/input"
)

// Processes without a number are reported by their name.
func TestNameProcesses(t *testing.T) {
	text := `{:process "n5 worker" :type :invoke :f :lock :time 1}
{:process :w1 :type :ok :f :unlock :time 2}
{:process "n5 worker" :type :invoke :f :lock :time 3}`
	h, _, err := Read(strings.NewReader(text), "h", Options{Clients: 5})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, p := range h.Problems {
		texts = append(texts, p.Text)
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{"process w1 completes release", "process n5 worker invokes acquire"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
	if a, b := h.Spans[0].Process.Client(5), h.Spans[1].Process.Client(5); a != b || a < input.FirstNamed {
		t.Errorf("one process is client %d and client %d", a, b)
	}
	got := h.NameProcesses("client 1000001 and client 1000000, process 1000002, client 3, order 1000001")
	if want := "client w1 and client n5 worker, process 1000002, client 3, order 1000001"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
