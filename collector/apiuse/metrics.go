package apiuse

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	// maxMetrics bounds the metrics of an API server, in bytes.
	maxMetrics = 256 << 20
	// maxMetric bounds one line of the metrics, maxKept all lines that are kept, in bytes.
	maxMetric, maxKept = 64 << 10, 4 << 20
	// deprecatedMetric is 1 for every deprecated API that was requested since
	// the API server started (apiserver pkg/endpoints/metrics).
	deprecatedMetric = "apiserver_requested_deprecated_apis"
)

// Deprecated is an API that was requested, and that a release of Kubernetes removes.
type Deprecated struct {
	// Name is resource.version.group, or resource.version.
	Name string
	// RemovedInRelease is the release of Kubernetes, "1.32", that removes it.
	RemovedInRelease string
}

// ReadMetrics reads the metrics of an API server: the APIs that it was requested for since it
// started, sorted by name. It keeps only the lines of one metric, since all metrics of an API
// server have many megabytes.
func ReadMetrics(metrics io.Reader) ([]Deprecated, error) {
	kept, err := KeepMetrics(metrics)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(kept))
	if err != nil {
		return nil, fmt.Errorf("the metric %s cannot be parsed: %w", deprecatedMetric, err)
	}
	var found []Deprecated
	for _, metric := range families[deprecatedMetric].GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if metric.GetUntyped().GetValue() != 0 && labels["removed_release"] != "" {
			found = append(found, deprecated(labels))
		}
	}
	slices.SortFunc(found, func(a, b Deprecated) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.RemovedInRelease, b.RemovedInRelease))
	})
	return slices.Compact(found), nil // subresources belong to the same API
}

// KeepMetrics are the lines of the metrics of an API server that ReadMetrics needs.
func KeepMetrics(metrics io.Reader) ([]byte, error) {
	bounded := &io.LimitedReader{R: metrics, N: maxMetrics}
	lines := bufio.NewScanner(bounded)
	lines.Buffer(nil, maxMetric)
	var kept bytes.Buffer
	for lines.Scan() {
		if line := lines.Bytes(); bytes.HasPrefix(line, []byte(deprecatedMetric+"{")) {
			kept.Write(line)
			kept.WriteByte('\n')
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("the API server's metrics cannot be read: %w", err)
	}
	if bounded.N <= 0 || kept.Len() > maxKept {
		return nil, fmt.Errorf("the API server's metrics have more than %d bytes, or those of %s more than %d", maxMetrics, deprecatedMetric, maxKept)
	}
	return kept.Bytes(), nil
}

func deprecated(labels map[string]string) Deprecated {
	name := labels["resource"] + "." + labels["version"]
	if group := labels["group"]; group != "" {
		name += "." + group
	}
	return Deprecated{Name: name, RemovedInRelease: labels["removed_release"]}
}
