package lock

import "testing"

func TestKeysShareASlot(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		ok         bool
	}{
		{"orders", "{orders}:token", true},
		{"orders:7", "{orders:7}:token", true},
		{"{user}:7", "{user}:7:token", true},
		{"a{b}c", "a{b}c:token", true},
		{"a{b", "{a{b}:token", true},
		{"a}b", "", false},
		{"a{}b", "", false},
		{"", "", false},
	} {
		err := checkName(tt.name)
		if (err == nil) != tt.ok {
			t.Errorf("%q: error %v, want ok %v", tt.name, err, tt.ok)
		}
		if got := (claim{key: tt.name}).tokenKey(); tt.ok && got != tt.want {
			t.Errorf("%q: token key %q, want %q", tt.name, got, tt.want)
		}
	}
}
