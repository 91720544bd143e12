package cluster

import (
	"errors"
	"strings"
	"testing"
)

// TestCheckOption: options that redis-server would refuse have an error that names the accepted values.
func TestCheckOption(t *testing.T) {
	for directive, want := range map[string]string{
		"appendfsync always":                  "",
		"AppendOnly YES":                      "",
		"min-slaves-to-write 1":               "",
		"hash-max-ziplist-value 64":           "",
		"maxmemory 2mb":                       "",
		`save ""`:                             "",
		"slowlog-log-slower-than -1":          "",
		"client-output-buffer-limit pubsub 1": "",
		"appendfsync sometimes":               "one of always, everysec, no",
		"appendonly 1":                        "yes or no",
		"maxmemory lots":                      "number of bytes",
		"maxmemory -1":                        "number of bytes",
		"min-replicas-to-write many":          "integer from 0,",
		"min-replicas-to-write -1":            "integer from 0,",
		"io-threads 129":                      "integer from 1 to 128",
		"appendonlyy yes":                     "unknown option",
		"Include /etc/redis.conf":             "reserved for the harness",
		"port 1":                              "reserved for the harness",
	} {
		name, value, _ := strings.Cut(directive, " ")
		err := CheckOption(name, value)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", directive, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", directive, err, want)
		}
		if errors.Is(err, ErrUnknownOption) != (want == "unknown option") {
			t.Errorf("%s: %v", directive, err)
		}
	}
	if err := CheckOption("save", "1 1\nport 1"); err == nil {
		t.Error("two directives in one value are accepted")
	}
}

// TestOptionsAreUnique: a directive has one row.
func TestOptionsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range options() {
		if seen[o.Name] || o.Name != currentName(o.Name) {
			t.Errorf("%s: a second row, or an old name", o.Name)
		}
		seen[o.Name] = true
	}
}
