package foreign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/history/foreign"
)

// TestValueKeys: whether values name locks. Each operation is a process, its name, and the value of the invocation, and
// perhaps of the completion.
func TestValueKeys(t *testing.T) {
	tuple, scalar := foreign.ValueKeys{Path: "value.0", Certain: true}, foreign.ValueKeys{Path: "value", Certain: true}
	perhaps := func(k foreign.ValueKeys) foreign.ValueKeys { k.Certain = false; return k }
	for name, test := range map[string]struct {
		operations []string
		want       foreign.ValueKeys
	}{
		"tuples":                  {[]string{"0 acquire [:a nil]", "1 acquire [:b nil]"}, tuple},
		"tuples of owners":        {[]string{"0 acquire [:me :a]", "1 acquire [:you :a]"}, perhaps(tuple)},
		"tuples with numbers":     {[]string{"0 acquire [1 7]", "1 acquire [1 8]"}, tuple},
		"completed by another":    {[]string{"0 acquire [:a nil] => [:b nil]"}, foreign.ValueKeys{}},
		"completed by a token":    {[]string{"0 acquire [:a nil] => 7"}, tuple},
		"not all are tuples":      {[]string{"0 acquire [:a nil]", "1 acquire nil"}, foreign.ValueKeys{}},
		"tuples of collections":   {[]string{"0 acquire [[1] nil]"}, foreign.ValueKeys{}},
		"names":                   {[]string{"0 acquire :a", "0 release :a", "1 acquire :a", "1 release :a"}, scalar},
		"names without releases":  {[]string{"0 acquire :a", "0 release nil", "1 acquire :a"}, perhaps(scalar)},
		"owners":                  {[]string{"0 acquire :me", "0 release :me", "1 acquire :you", "1 release :you"}, perhaps(scalar)},
		"numbers of requests":     {[]string{"0 acquire 1", "0 release 2", "1 acquire 3", "1 release 4"}, foreign.ValueKeys{}},
		"no values":               {[]string{"0 acquire nil", "0 release nil"}, foreign.ValueKeys{}},
		"maps":                    {[]string{"0 acquire {:client 3}"}, foreign.ValueKeys{}},
		"values of other objects": {[]string{"0 cas [1 nil]", "0 read :a"}, foreign.ValueKeys{}},
	} {
		var text strings.Builder
		for i, o := range test.operations {
			process, o, _ := strings.Cut(o, " ")
			f, value, _ := strings.Cut(o, " ")
			end := value
			if from, to, is := strings.Cut(value, " => "); is {
				value, end = from, to
			}
			for n, typ := range []string{"invoke", "ok"} {
				fmt.Fprintf(&text, "{:process %s :type :%s :f :%s :time %d :value %s}\n", process, typ, f, 2*i+n,
					[]string{value, end}[n])
			}
		}
		_, info, err := foreign.Read(strings.NewReader(text.String()), "x", foreign.Options{})
		if err != nil || info.Keys != test.want {
			t.Errorf("%s: got %+v, %v; want %+v", name, info.Keys, err, test.want)
		}
	}
}
