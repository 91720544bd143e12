package pubsub

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Output of redis-server 7.0.
const (
	subscribed2   = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
	psubscribed2  = "*3\r\n$10\r\npsubscribe\r\n$2\r\nn*\r\n:1\r\n"
	unsubscribed2 = "*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n"
	message2      = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n"
	pmessage2     = "*4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$5\r\nhello\r\n"
	pong2         = "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
	subscribed3   = ">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
	message3      = ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n"
	smessage3     = ">3\r\n$8\r\nsmessage\r\n$4\r\nnews\r\n$11\r\na\r\n*3\r\nabcd\r\n"
	invalidate3   = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
	map3          = "%1\r\n$5\r\nproto\r\n:3\r\n"
	nested        = "*2\r\n*2\r\n$7\r\nmessage\r\n$-1\r\n:7\r\n"
)

// TestFilter: in pieces of every size, messages and nothing else are dropped.
func TestFilter(t *testing.T) {
	for name, test := range map[string]struct {
		sent []string
		lost []int // which of them are messages
	}{
		"RESP2 messages": {
			sent: []string{"+OK\r\n", subscribed2, message2, message2, pong2, unsubscribed2}, lost: []int{2, 3},
		},
		"RESP2 pattern": {sent: []string{psubscribed2, pmessage2}, lost: []int{1}},
		"an array that looks like one": {
			sent: []string{message2, subscribed2, message2, unsubscribed2, message2}, lost: []int{2},
		},
		"after RESET": {sent: []string{subscribed2, message2, "+RESET\r\n", message2}, lost: []int{1}},
		"RESP3": {
			sent: []string{map3, subscribed3, message3, ":1\r\n", smessage3, invalidate3}, lost: []int{2, 4},
		},
		"RESP3, an array like one": {sent: []string{message2, message3}, lost: []int{1}},
		"other replies": {
			sent: []string{nested, "*0\r\n", "*-1\r\n", "$-1\r\n", "_\r\n", "-ERR no\r\n", ",1.5\r\n", "#t\r\n"},
		},
		"a string that looks like one": {
			sent: []string{subscribed2, fmt.Sprintf("$%d\r\n%s\r\n", len(message2), message2), message2}, lost: []int{2},
		},
		"attributes": {
			sent: []string{"|1\r\n$1\r\na\r\n:1\r\n", "*2\r\n|1\r\n$1\r\na\r\n:1\r\n:5\r\n:6\r\n", message3}, lost: []int{2},
		},
		"a verbatim string, a big one": {
			sent: []string{"=7\r\ntxt:abc\r\n", "(123456789012345678901234567890\r\n", message3}, lost: []int{2},
		},
		"empty pushes, and an array in one": {
			sent: []string{">0\r\n", ">1\r\n*1\r\n:1\r\n", ">1\r\n:1\r\n", message3}, lost: []int{3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := strings.Join(test.sent, "")
			want := ""
			for i, s := range test.sent {
				if !slices.Contains(test.lost, i) {
					want += s
				}
			}
			for size := 1; size <= len(all); size++ {
				var f Filter
				got, n := "", 0
				for rest := all; rest != ""; {
					piece := rest[:min(size, len(rest))]
					rest = rest[len(piece):]
					out, messages := f.Pass([]byte(piece), true)
					got, n = got+string(out), n+messages
				}
				if got != want || n != len(test.lost) || f.notRESP {
					t.Fatalf("in pieces of %d: alien %v, %d lost, passed\n%q, want\n%q", size, f.notRESP, n, got, want)
				}
			}
		})
	}
}

// TestMutedForAWhile: a message is dropped or passes as a whole, wherever muting begins and ends.
func TestMutedForAWhile(t *testing.T) {
	all := subscribed2 + message2 + message2 + message2
	for from := range len(all) {
		for to := from; to <= len(all); to += 7 {
			var f Filter
			a, n1 := f.Pass([]byte(all[:from]), false)
			b, n2 := f.Pass([]byte(all[from:to]), true)
			c, n3 := f.Pass([]byte(all[to:]), false)
			got := string(a) + string(b) + string(c)
			left := 3 - n1 - n2 - n3
			if want := subscribed2 + strings.Repeat(message2, max(0, left)); got != want {
				t.Fatalf("muted from %d to %d: %d lost, passed\n%q", from, to, 3-left, got)
			}
			if from == len(subscribed2) && to == len(all) && left != 0 {
				t.Fatalf("%d of 3 messages were not dropped", left)
			}
		}
	}
}

// TestOtherProtocolsPass: other protocols than RESP pass byte by byte, including bytes that were pending.
func TestOtherProtocolsPass(t *testing.T) {
	for _, sent := range []string{
		"RCmb\x00\x00\x01", "+FULLRESYNC abc 0\r\n$5\r\nREDIS*3\r\n", "*x\r\n", "*3\r\n$7\r\nmessageXX$4\r\n", "\r\n", "\n",
		"$\r\n", "*3\r\n$?\r\n", "+" + strings.Repeat("x", maxHeader+1), "*99999999999999999999\r\n", ">3\r\n\x00",
	} {
		for _, muted := range []bool{true, false} {
			var f Filter
			var text strings.Builder
			for _, c := range []byte(sent) {
				out, lost := f.Pass([]byte{c}, muted)
				text.Write(out)
				if lost > 0 {
					t.Errorf("%.40q: a message was lost", sent)
				}
			}
			got := text.String()
			if f.notRESP && got != sent || !strings.HasPrefix(sent, got) {
				t.Errorf("%.40q became %.40q", sent, got)
			}
		}
	}
}

// FuzzFilter: the result does not depend on how data is split, and nothing is dropped while not muted.
func FuzzFilter(f *testing.F) {
	f.Add([]byte(subscribed2+message2+pong2), uint64(1))
	f.Add([]byte(map3+message3+invalidate3+nested), uint64(2))
	f.Add([]byte("*3\r\n$7\r\nmes"), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		var whole, pieces, open Filter
		want, lost := whole.Pass(append([]byte(nil), data...), true)
		want = append([]byte(nil), want...)
		r := rand.New(rand.NewPCG(seed, 1))
		var got []byte
		n := 0
		for rest := data; len(rest) > 0; {
			piece := rest[:1+r.IntN(len(rest))]
			rest = rest[len(piece):]
			out, messages := pieces.Pass(append([]byte(nil), piece...), true)
			got, n = append(got, out...), n+messages
		}
		// Other protocols may be detected sooner or later, depending on the split.
		if !whole.notRESP && !pieces.notRESP && (n != lost || string(got) != string(want)) {
			t.Errorf("%q: in pieces %q (%d lost), at once %q (%d lost)", data, got, n, want, lost)
		}
		if same, none := open.Pass(append([]byte(nil), data...), false); string(same) != string(data) || none != 0 {
			t.Errorf("%q: not muted it became %q", data, same)
		}
	})
}

func BenchmarkPass(b *testing.B) {
	var f Filter
	data := []byte("*3\r\n:1\r\n:1700000000000001\r\n:10000\r\n")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		f.Pass(data, false)
	}
}
