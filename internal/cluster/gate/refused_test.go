package gate

import (
	"testing"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// TestLook: replies that refuse a caller for want of a password are counted, and others remembered.
func TestLook(t *testing.T) {
	for _, c := range []struct {
		replies []string
		want    cluster.Traffic
	}{
		{nil, cluster.Traffic{}},
		{[]string{"-NOAUTH Authentication required.\r\n", "-WRONGPASS invalid username-password pair\r\n"}, cluster.Traffic{Refused: 2}},
		{[]string{"-NOAUTH Authentication required.\r\n", "+OK\r\n"}, cluster.Traffic{Refused: 1, Accepted: true}},
		{[]string{"-ERR unknown command\r\n", ":1\r\n", "-"}, cluster.Traffic{Accepted: true}},
	} {
		var d direction
		for _, reply := range c.replies {
			d.look([]byte(reply))
		}
		var got cluster.Traffic
		if d.addTo(&got); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.replies, got, c.want)
		}
	}
}
