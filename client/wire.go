package client

import (
	"encoding/json"
	"time"
)

// plainRequest is a Request without its methods.
type plainRequest Request

// wireRequest is a request as one line has it.
type wireRequest struct {
	plainRequest
	LeaseMS float64 `json:"lease_ms,omitempty"`
	WaitMS  float64 `json:"wait_ms,omitempty"`
	MS      float64 `json:"ms,omitempty"`
	CloseMS float64 `json:"close_ms,omitempty"`
}

// MarshalJSON writes durations as milliseconds.
func (r Request) MarshalJSON() ([]byte, error) {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return json.Marshal(wireRequest{plainRequest(r), ms(r.Lease), ms(r.Wait), ms(r.Work), ms(r.Close)})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (r *Request) UnmarshalJSON(line []byte) error {
	var w wireRequest
	if err := json.Unmarshal(line, &w); err != nil {
		return err
	}
	*r = Request(w.plainRequest)
	r.Lease, r.Wait = millis(w.LeaseMS), millis(w.WaitMS)
	r.Work, r.Close = millis(w.MS), millis(w.CloseMS)
	return nil
}

// century bounds every duration on the wire: a harness may send anything, and the sum of two durations must not
// overflow.
const century = 100 * 365 * 24 * time.Hour

// millis is ms milliseconds, at most a century to either side of zero.
func millis(ms float64) time.Duration {
	most := float64(century / time.Millisecond)
	return time.Duration(max(-most, min(most, ms)) * float64(time.Millisecond))
}
