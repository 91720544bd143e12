package main

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
	// otlpHeaders is the variable of OpenTelemetry for headers, such as a token: key=value,key=value, in URL encoding.
	otlpHeaders = "OTEL_EXPORTER_OTLP_HEADERS"
	otlpTimeout = 10 * time.Second // of each request, as OpenTelemetry's exporters have it
)

// otlpURL is where spans are sent to; "" if raw is.
func otlpURL(raw string) (string, error) {
	if raw == "" {
		return "", nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", usage(fmt.Errorf("--otlp: %w", err))
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", usage(fmt.Errorf("--otlp %s: give the http or https URL of a collector, such as http://localhost:4318",
			shellQuote(raw)))
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// exportSpans sends the spans of a run to a collector (OTLP/HTTP, JSON). A collector that cannot be reached does not
// change the verdict: the error is for a note.
func exportSpans(ctx context.Context, run *reports.Run, to string) error {
	headers, err := url.ParseQuery(strings.ReplaceAll(os.Getenv(otlpHeaders), ",", "&"))
	if err != nil {
		return fmt.Errorf("%s: %w", otlpHeaders, err)
	}
	var lines bytes.Buffer
	if err := reports.Render(run, "otlp", &lines); err != nil {
		return err
	}
	for line := range bytes.Lines(lines.Bytes()) {
		if err := postSpans(ctx, to, headers, line); err != nil {
			return err
		}
	}
	return nil
}

func postSpans(ctx context.Context, to string, headers url.Values, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, otlpTimeout)
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
