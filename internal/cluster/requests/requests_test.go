package requests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster/resp"
)

// encode is a request as a client sends it.
func encode(line string) string { return string(resp.AppendStrings(nil, strings.Fields(line)...)) }

// copies are the requests that a copy of each write would consist of, with every piece of the input apart.
func copies(t *testing.T, piece int, lines ...string) (all []string) {
	t.Helper()
	var input strings.Builder
	for _, line := range lines {
		input.WriteString(encode(line))
	}
	var s Splitter
	for part := range slices.Chunk([]byte(input.String()), piece) {
		s.Take(part, func(copied func() Copy) {
			c := copied()
			all = append(all, string(c.Data))
			if n := strings.Count(string(c.Data), "*"); n != c.replies {
				t.Errorf("%d replies expected to %d requests in %q", c.replies, n, c.Data)
			}
		})
	}
	return all
}

func TestCopiesOfWrites(t *testing.T) {
	for name, c := range map[string]struct {
		lines, want []string
	}{
		"a script":         {[]string{"EVALSHA abc 1 k"}, []string{"EVALSHA abc 1 k"}},
		"in any case":      {[]string{"set k v NX", "del k"}, []string{"set k v NX", "del k"}},
		"not a read":       {[]string{"GET k", "PING", "WAIT 1 10", "SUBSCRIBE c", "CLIENT ID"}, nil},
		"not what blocks":  {[]string{"BLPOP q 0", "BRPOPLPUSH a b 0"}, nil},
		"not in MULTI":     {[]string{"MULTI", "DEL k", "EXEC", "DEL j"}, []string{"DEL j"}},
		"after DISCARD":    {[]string{"MULTI", "DEL k", "DISCARD", "DEL j"}, []string{"DEL j"}},
		"with its login":   {[]string{"AUTH pw", "DEL k"}, []string{"AUTH pw DEL k"}},
		"RESP3":            {[]string{"HELLO 3 AUTH me pw SETNAME x", "DEL k"}, []string{"AUTH me pw DEL k"}},
		"with its index":   {[]string{"SELECT 2", "DEL k"}, []string{"SELECT 2 DEL k"}},
		"asking":           {[]string{"ASKING", "DEL k", "DEL j"}, []string{"ASKING DEL k", "DEL j"}},
		"after a reset":    {[]string{"AUTH pw", "MULTI", "RESET", "DEL k"}, []string{"DEL k"}},
		"several in a row": {[]string{"SET a 1", "GET a", "SET b 2"}, []string{"SET a 1", "SET b 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{1, 7, 1 << 20} {
				got := copies(t, piece, c.lines...)
				words := make([]string, 0, len(got))
				for _, one := range got {
					words = append(words, plain(one))
				}
				if !slices.Equal(words, c.want) {
					t.Errorf("in pieces of %d bytes: %q, want %q", piece, words, c.want)
				}
			}
		})
	}
}

// plain is encoded requests as words.
func plain(encoded string) string {
	var words []string
	for line := range strings.SplitSeq(encoded, "\r\n") {
		if line != "" && line[0] != '*' && line[0] != '$' {
			words = append(words, line)
		}
	}
	return strings.Join(words, " ")
}

func TestInlineRequest(t *testing.T) {
	var s Splitter
	var got []string
	s.Take([]byte("AUTH pw\r\n\r\nSET k v\r\nGET k\r\n"), func(copied func() Copy) {
		got = append(got, string(copied().Data))
	})
	if want := []string{"AUTH pw\r\nSET k v\r\n"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestExecuted(t *testing.T) {
	login := Copy{replies: 2}
	for replies, want := range map[string]string{
		"":                                  "false false",
		"+OK\r\n":                           "false false",
		"+OK\r\n:1\r":                       "false false",
		"+OK\r\n:1\r\n":                     "true true",
		"+OK\r\n$-1\r\n":                    "true true",
		"+OK\r\n*2\r\n:1\r\n$1\r\na\r\n":    "true true",
		"+OK\r\n-MOVED 1 host:1\r\n":        "true false",
		"-WRONGPASS bad\r\n-NOAUTH bad\r\n": "true false",
		"garbage\r\n":                       "true false",
	} {
		all, executed := login.Executed([]byte(replies))
		if got := fmt.Sprint(all, executed); got != want {
			t.Errorf("%q: %s, want %s", replies, got, want)
		}
	}
}

// TestGarbageIsNoRequest: an unparsable request ends the search, and an endless line is not kept.
func TestGarbageIsNoRequest(t *testing.T) {
	for _, garbage := range []string{"*x\r\n", "*1\r\n:1\r\n", "*1\r\n$x\r\n", "*1\n", "*1\r\n$9999999\r\n",
		strings.Repeat("x", maxRequest+1)} {
		var s Splitter
		s.Take([]byte(garbage), nil)
		s.Take([]byte(encode("DEL k")), func(func() Copy) { t.Errorf("a request was found after %.20q", garbage) })
		if len(s.rest) > 0 || !s.notRESP {
			t.Errorf("%.20q: %d bytes kept, not RESP: %v", garbage, len(s.rest), s.notRESP)
		}
	}
}

func FuzzSplitter(f *testing.F) {
	for _, line := range []string{"EVALSHA abc 1 k", "HELLO 3 AUTH me pw", "MULTI", "ASKING"} {
		f.Add([]byte(encode(line)+encode("DEL k")), 3)
	}
	f.Add([]byte("*-1\r\n*0\r\n\r\n"), 1)
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		take := func(piece int) (all string) {
			var s Splitter
			for part := range slices.Chunk(data, piece) {
				s.Take(part, func(copied func() Copy) { all += string(copied().Data) + "|" })
			}
			return all
		}
		if whole, parts := take(max(len(data), 1)), take(max(piece, 1)); whole != parts {
			t.Errorf("in pieces of %d bytes %q, in one %q", piece, parts, whole)
		}
	})
}
