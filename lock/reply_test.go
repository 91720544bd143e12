package lock

import (
	"errors"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/lock/internal/wire"
)

// The scripts and the client have the same table of codes.
func TestCodesAreThoseOfTheScripts(t *testing.T) {
	t.Parallel()
	inLua := make(map[string]int64)
	for _, m := range regexp.MustCompile(`(?m)^local (\w+) = (-\d+)`).FindAllStringSubmatch(lua("codes"), -1) {
		inLua[m[1]], _ = strconv.ParseInt(m[2], 10, 64)
	}
	want := map[string]int64{
		"RELEASED": codeReleased, "NOT_HELD": codeNotHeld, "NOT_OWNER": codeNotOwner, "REENTERED": codeReentered,
		"UPGRADE": codeUpgrade, "ABSENT": codeAbsent, "OUT_OF_RANGE": codeOutOfRange, "REARMED": codeRearmed,
		"UNSURE": codeUnsure,
	}
	if diff := cmp.Diff(want, inLua); diff != "" {
		t.Errorf("codes of codes.lua: %s", diff)
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw    any
		n      int
		code   int64
		values []int64
	}{
		{raw: int64(7), n: 1, code: wire.CodeOK, values: []int64{7, 0}},
		{raw: int64(0), n: 1, code: wire.CodeOK, values: []int64{0, 0}},
		{raw: int64(codeNotOwner), n: 1, code: codeNotOwner},
		{raw: int64(codeAbsent), n: 3, code: codeAbsent},
		{raw: []any{int64(codeRefused), int64(3), int64(40)}, n: 2, code: codeRefused, values: []int64{3, 40, 0}},
		{raw: []any{int64(codeRearmed)}, n: 2, code: codeRearmed},
	} {
		r, err := decode(tt.raw, tt.n)
		if err != nil || r.Code != tt.code {
			t.Errorf("decode %v: %+v, %v, want the code %d", tt.raw, r, err, tt.code)
		}
		for i, want := range tt.values {
			if got := r.Int(i); got != want {
				t.Errorf("value %d of %v: %d, want %d", i, tt.raw, got, want)
			}
		}
	}
	for _, raw := range []any{
		nil, "1", int64(5), []any{}, []any{"x", int64(1), int64(2)}, []any{int64(1), int64(1), "2"},
	} {
		if r, err := decode(raw, 2); outcomeOf(err) != wire.Unknown || !errors.Is(err, ErrUnknown) {
			t.Errorf("decode %v: %+v, %v, want an unknown outcome", raw, r, err)
		}
	}
}
