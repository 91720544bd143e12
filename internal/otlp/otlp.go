// Package otlp sends the spans of a run to an OpenTelemetry collector (OTLP/HTTP, JSON).
//
// Read [Send] first.
package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/reports"
)

const (
	// Headers is the variable of OpenTelemetry for headers, such as a token: key=value,key=value, in URL encoding.
	Headers = "OTEL_EXPORTER_OTLP_HEADERS"
	timeout = 10 * time.Second // of each request, as OpenTelemetry's exporters have it
)

// URL is the address for traces of the collector that raw names; "" if raw is.
func URL(raw string) (string, error) {
	if raw == "" {
		return "", nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q: give the http or https URL of a collector, such as http://localhost:4318", raw)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// Send sends the spans of a run to the traces address of a collector. A collector that cannot be reached does not
// change the verdict: the error is for a note.
func Send(ctx context.Context, run *reports.Run, to string) error {
	headers, err := url.ParseQuery(strings.ReplaceAll(os.Getenv(Headers), ",", "&"))
	if err != nil {
		return fmt.Errorf("%s: %w", Headers, err)
	}
	var lines bytes.Buffer
	if err := reports.Render(run, "otlp", &lines); err != nil {
		return err
	}
	for line := range bytes.Lines(lines.Bytes()) {
		if err := post(ctx, to, headers, line); err != nil {
			return err
		}
	}
	return nil
}

func post(ctx context.Context, to string, headers url.Values, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name := range headers {
		request.Header.Set(name, headers.Get(name))
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1000)) // for the message alone
	if response.StatusCode/100 != 2 {
		return errors.New(response.Status + ": " + format.Line(string(text)))
	}
	return nil
}
