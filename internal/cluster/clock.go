package cluster

import (
	"fmt"
	"strconv"
	"time"
)

// ParseTime reads the reply to TIME: the seconds and microseconds of a server's clock (redis.io, TIME).
func ParseTime(reply any) (time.Time, error) {
	words, _ := reply.([]any)
	if len(words) != 2 {
		return time.Time{}, fmt.Errorf("unexpected reply to TIME: %v", reply)
	}
	seconds, err1 := strconv.ParseInt(fmt.Sprint(words[0]), 10, 64)
	micros, err2 := strconv.ParseInt(fmt.Sprint(words[1]), 10, 64)
	if err1 != nil || err2 != nil {
		return time.Time{}, fmt.Errorf("unexpected reply to TIME: %v", reply)
	}
	return time.Unix(seconds, micros*int64(time.Microsecond)), nil
}
