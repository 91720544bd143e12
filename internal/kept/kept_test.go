package kept

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
)

// TestValues: whose hold a value is follows from its name, from the grant with which it appeared, or from whose it was
// before.
func TestValues(t *testing.T) {
	const holds = `clients 3
client 0 acquire k 1.0-1.1 ok owner=alpha-0
client 1 acquire k 1.0-2.1 ok owner=beta-1
client 0 release k 2.0-2.05 ok owner=alpha-0
client 1 release k 3.0-3.1 ok owner=beta-1
`
	for name, test := range map[string]struct{ history, want string }{
		"named": {holds + "witness n 1.2 k owner=alpha-0\nwitness n 2.2 k owner=beta-1\nwitness n 3.2\n",
			"alpha-0 client 0 hold 0; beta-1 client 1 hold 1 replaced"},
		"in a longer id": {holds + "witness n 1.2 k owner=x:alpha-0:7\n", "x:alpha-0:7 client 0 hold 0"},
		"by the grant": {holds + "witness n 0.9\nwitness n 1.2 k owner=u\nwitness n 2.2 k owner=w\nwitness n 3.2\n",
			"u client 0 hold 0; w client 1 hold 1 replaced"},
		"set back": {holds + "witness n 0.9\nwitness n 1.2 k owner=u\nwitness n 2.2 k owner=w\nwitness n 2.5 k owner=u\n" +
			"witness n 3.2\n", "u client 0 hold 0; w client 1 hold 1 replaced; u client 0 hold 0 replaced"},
		"one value for all": {holds + "witness n 0.9\nwitness n 1.2 k owner=1\nwitness n 2.06\nwitness n 2.2 k owner=1\n" +
			"witness n 3.2\nwitness n 3.3 k owner=1\n", "1 client 0 hold 0; 1 client 1 hold 1; 1 client -1 hold -1"},
		"changed by a renewal": {holds + "witness n 0.9\nwitness n 1.2 k owner=100\nwitness n 1.5 k owner=130\n" +
			"witness n 2.06\n", "100 client 0 hold 0; 130 client 0 hold 0 replaced"},
		"changed by a renewal, then granted": {holds + "witness n 0.9\nwitness n 1.2 k owner=100\nwitness n 1.9 k owner=130\n" +
			"witness n 2.15 k owner=200\nwitness n 3.2\n",
			"100 client 0 hold 0; 130 client 0 hold 0 replaced; 200 client 1 hold 1 replaced"},
		"changed by renewals, then granted": {holds + "witness n 0.9\nwitness n 1.2 k owner=100\nwitness n 1.5 k owner=130\n" +
			"witness n 1.9 k owner=160\nwitness n 2.15 k owner=200\nwitness n 3.2\n", "100 client 0 hold 0; " +
			"130 client 0 hold 0 replaced; 160 client 0 hold 0 replaced; 200 client 1 hold 1 replaced"},
		"two grants, and one release": {"clients 2\nclient 0 acquire k 1.0-1.1 ok owner=a\n" +
			"client 1 acquire k 1.0-1.1 ok owner=b\nclient 0 release k 2.0-2.1 fail owner=a\n" +
			"client 1 release k 2.2-2.3 ok owner=b\nwitness n 0.9\nwitness n 1.2 k owner=u\nwitness n 2.15 k owner=u\n" +
			"witness n 2.4\n", "u client 1 hold 1"},
		"two grants, and no release": {"clients 2\nclient 0 acquire k 1.0-1.1 ok owner=a\n" +
			"client 1 acquire k 1.0-1.1 ok owner=b\nwitness n 0.9\nwitness n 1.2 k owner=u\n", "u client -1 hold -1"},
		"nobody's": {holds + "witness n 0.2 k owner=u\nwitness n 0.9\n", "u client -1 hold -1"},
	} {
		h, err := foreign.ReadText(strings.NewReader(test.history), name)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, s := range Find(h, h.Samples).stays {
			text := fmt.Sprintf("%s client %d hold %d", s.Value, s.Client, s.Span)
			if s.Replaced != nil {
				text += " replaced"
			}
			all = append(all, text)
		}
		if got := strings.Join(all, "; "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestWhose: whose hold a value is at an instant, also if all holds have the same value, or an acquire had no reply.
func TestWhose(t *testing.T) {
	const first = "clients 3\nclient 0 acquire k 1.0-1.1 ok owner=a\n"
	for name, test := range map[string]struct {
		history string
		want    string // at 1.5, 2.5 and 2.9
	}{
		"released and granted between two samples": {first + "client 1 acquire k 1.0-2.1 ok owner=b\n" +
			"client 0 release k 2.0-2.05 ok owner=a\nclient 1 release k 3.0-3.1 ok owner=b\nwitness n 0.9\n" +
			"witness n 1.2 k owner=1\nwitness n 1.99 k owner=1\nwitness n 2.07 k owner=1\nwitness n 2.95 k owner=1\n" +
			"witness n 3.2\n", "0 1 1"},
		"released, and not granted again": {first + "client 0 release k 2.0-2.05 ok owner=a\nwitness n 0.9\n" +
			"witness n 1.2 k owner=1\nwitness n 2.95 k owner=1\n", "0 0 0"},
		"expired and granted between two samples": {first + "client 1 acquire k 1.0-2.04 ok owner=b\n" +
			"client 0 release k 2.6-2.7 fail owner=a\nwitness n 0.9\nwitness n 1.2 k owner=1 ttl=800ms\n" +
			"witness n 1.99 k owner=1 ttl=10ms\nwitness n 2.02 k owner=1 ttl=990ms\n" +
			"witness n 2.95 k owner=1 ttl=60ms\n", "0 1 1"},
		"renewed while another client waits": {first + "client 0 renew k 1.95-2.0 ok owner=a\n" +
			"client 1 acquire k 1.0-3.04 ok owner=b\nclient 0 release k 3.0-3.02 ok owner=a\nwitness n 0.9\n" +
			"witness n 1.2 k owner=u ttl=800ms\nwitness n 1.94 k owner=u ttl=60ms\nwitness n 1.99 k owner=u ttl=990ms\n" +
			"witness n 2.95 k owner=u ttl=30ms\nwitness n 3.03\n", "0 0 0"},
		"set by an acquire without a reply": {first + "client 0 release k 2.0-2.05 ok owner=a\n" +
			"client 1 acquire k 2.2-2.9 info owner=b\nwitness n 0.9\nwitness n 1.2 k owner=1\nwitness n 2.1\n" +
			"witness n 2.3 k owner=1\nwitness n 2.95 k owner=1\n", "0 1 1"},
		"set by one of two acquires without a reply": {first + "client 0 release k 2.0-2.05 ok owner=a\n" +
			"client 1 acquire k 2.2-2.9 info owner=b\nclient 2 acquire k 2.2-2.9 info owner=c\nwitness n 0.9\n" +
			"witness n 1.2 k owner=u\nwitness n 2.1\nwitness n 2.3 k owner=w\nwitness n 2.95 k owner=w\n", "0 -1 -1"},
	} {
		h, err := foreign.ReadText(strings.NewReader(test.history), name)
		if err != nil {
			t.Fatal(err)
		}
		v, got := Find(h, h.Samples), ""
		for _, at := range []time.Duration{1500, 2500, 2900} {
			last := slices.IndexFunc(h.Samples, func(x history.Sample) bool { return x.Time > at*time.Millisecond }) - 1
			if last < 0 {
				last = len(h.Samples) - 1
			}
			_, client := v.Whose("k", h.Samples[last].Keys["k"].Owner, at*time.Millisecond)
			got += fmt.Sprint(client, " ")
		}
		if got = strings.TrimSpace(got); got != test.want {
			t.Errorf("%s: clients %s, want %s", name, got, test.want)
		}
	}
}
