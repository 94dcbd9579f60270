// Package apiuse answers: which programs use an API that a release of Kubernetes removes?
//
// [Of] adds up one APIRequestCount. For a cluster without APIRequestCounts, [ReadMetrics] parses the metrics of an
// API server. The package makes no requests.
package apiuse

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/api/equality"
)

const (
	// maxClients bounds the clients of one API that are kept.
	maxClients = 100
	// maxVerbs bounds the verbs of one client that are kept.
	maxVerbs = 10
)

// Use is the use of an API that a release of Kubernetes removes.
type Use struct {
	// Name is resource.version.group, or resource.version.
	Name string
	// RemovedInRelease is the release of Kubernetes, "1.32", that removes it.
	RemovedInRelease string
	// Requests counts the last 24 hours.
	Requests int64
	// Reported are the starts of the hours for which every API server reported, sorted. An
	// API server that reports any hour reports all hours in which it runs, so the requests
	// of other hours are incomplete.
	Reported []time.Time
	// UnnamedHours are the starts of the hours with requests of clients that are not
	// among Clients, sorted. A zero time is an unknown hour.
	UnnamedHours []time.Time
	// Clients are the clients with the latest use and, among these, with the most requests, in this order, at most
	// 100; the API server does not keep all.
	Clients []Client
}

// Client is one program that uses an API.
type Client struct {
	User, Agent string
	// Requests counts the last 24 hours.
	Requests int64
	// Verbs are the verbs of the requests, sorted, at most 10.
	Verbs []string
	// LastUse is the start of the last hour with a request, in UTC, because requests are counted by the hour. It is
	// zero if the hour is unknown.
	LastUse time.Time
	// Hours are the starts of all hours with a request, sorted, at most 26. A zero time is an unknown hour.
	Hours []time.Time
}

// Of adds up the hours of a count, which include the current one, as of now.
func Of(count *apiserverv1.APIRequestCount, now time.Time) Use {
	status := &count.Status
	programs := clients{}
	var total int64
	var unnamed []time.Time
	for index, hour := range status.Last24h {
		total += hour.RequestCount
		programs.add(hour, hourOf(index, now))
		unnamed = appendUnnamed(unnamed, hour, hourOf(index, now))
	}
	switch current := now.UTC().Truncate(time.Hour); {
	case len(status.Last24h) == 0:
		total = status.CurrentHour.RequestCount
		programs.add(status.CurrentHour, current)
		unnamed = appendUnnamed(unnamed, status.CurrentHour, current)
	case !copied(status, current.Hour()):
		programs.use(status.CurrentHour, current)
		unnamed = appendUnnamed(unnamed, status.CurrentHour, current)
	}
	if status.RequestCount > total {
		unnamed = append(unnamed, time.Time{})
	}
	named, dropped := programs.sorted()
	unnamed = append(unnamed, dropped...)
	return Use{
		Name: count.Name, RemovedInRelease: status.RemovedInRelease,
		Requests: max(status.RequestCount, total), Clients: named,
		Reported: reported(status.Last24h, now), UnnamedHours: distinct(unnamed),
	}
}

// appendUnnamed adds the hour where a count exceeds the requests of the named users.
func appendUnnamed(hours []time.Time, hour apiserverv1.PerResourceAPIRequestLog, start time.Time) []time.Time {
	rest := hour.RequestCount
	unnamed := false
	for _, node := range hour.ByNode {
		users := int64(0)
		for _, user := range node.ByUser {
			users += max(0, user.RequestCount)
		}
		unnamed = unnamed || node.RequestCount > users
		rest -= users
	}
	if unnamed || rest > 0 {
		return append(hours, start)
	}
	return hours
}

func reported(day []apiserverv1.PerResourceAPIRequestLog, now time.Time) []time.Time {
	nodes := func(hours ...apiserverv1.PerResourceAPIRequestLog) map[string]bool {
		found := map[string]bool{}
		for _, hour := range hours {
			for _, node := range hour.ByNode {
				found[node.NodeName] = true
			}
		}
		return found
	}
	all := nodes(day...)
	var complete []time.Time
	for index, hour := range day[:min(len(day), 24)] {
		if len(all) > 0 && len(nodes(hour)) == len(all) {
			complete = append(complete, hourOf(index, now))
		}
	}
	return distinct(complete)
}

// distinct sorts times, without repetitions, in place.
func distinct(times []time.Time) []time.Time {
	slices.SortFunc(times, time.Time.Compare)
	return slices.CompactFunc(times, time.Time.Equal)
}

// hourOf returns the start of the hour that status.last24h holds at this index, the hour of the day in UTC. The
// API server empties the next hour in advance, so requests at that index belong to an hour that began after now.
// The time is zero for an invalid index.
func hourOf(index int, now time.Time) time.Time {
	if index >= 24 {
		return time.Time{}
	}
	now = now.UTC().Truncate(time.Hour)
	next := now.Add(time.Hour)
	age := (next.Hour() - index + 24) % 24
	return next.Add(-time.Duration(age) * time.Hour)
}

// copied reports whether status.currentHour repeats status.last24h: at the index of
// this hour or, when the hour has just begun, of the previous one.
func copied(status *apiserverv1.APIRequestCountStatus, hour int) bool {
	at := func(index int) apiserverv1.PerResourceAPIRequestLog {
		if index >= len(status.Last24h) {
			return apiserverv1.PerResourceAPIRequestLog{}
		}
		return status.Last24h[index]
	}
	return len(at(hour).ByNode) > 0 || equality.Semantic.DeepEqual(at((hour+23)%24), status.CurrentHour)
}

type clients map[[2]string]*client

type client struct {
	requests int64
	verbs    map[string]bool
	hours    map[time.Time]bool
}

func (c clients) add(hour apiserverv1.PerResourceAPIRequestLog, start time.Time) {
	for _, node := range hour.ByNode {
		for _, user := range node.ByUser {
			key := [2]string{user.UserName, user.UserAgent}
			if c[key] == nil {
				c[key] = &client{verbs: map[string]bool{}, hours: map[time.Time]bool{}}
			}
			c[key].requests += user.RequestCount
		}
	}
	c.use(hour, start)
}

// use notes the verbs and the time of requests that are counted.
func (c clients) use(hour apiserverv1.PerResourceAPIRequestLog, start time.Time) {
	for _, node := range hour.ByNode {
		for _, user := range node.ByUser {
			if client := c[[2]string{user.UserName, user.UserAgent}]; client != nil && user.RequestCount > 0 {
				client.use(user.ByVerb, start)
			}
		}
	}
}

func (c *client) use(verbs []apiserverv1.PerVerbAPIRequestCount, start time.Time) {
	c.hours[start] = true
	for _, verb := range verbs {
		if verb.RequestCount > 0 {
			c.verbs[verb.Verb] = true
		}
	}
}

// sorted are the first clients, and the hours of the others.
func (c clients) sorted() (first []Client, others []time.Time) {
	clients := make([]Client, 0, len(c))
	for key, client := range c {
		verbs := slices.Sorted(maps.Keys(client.verbs))
		found := Client{
			User: key[0], Agent: key[1], Requests: client.requests, Verbs: verbs[:min(len(verbs), maxVerbs)],
			Hours: slices.SortedFunc(maps.Keys(client.hours), time.Time.Compare),
		}
		if len(found.Hours) > 0 {
			found.LastUse = found.Hours[len(found.Hours)-1]
		}
		clients = append(clients, found)
	}
	slices.SortFunc(clients, func(a, b Client) int {
		return cmp.Or(b.LastUse.Compare(a.LastUse), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.User, b.User),
			cmp.Compare(a.Agent, b.Agent))
	})
	kept := min(len(clients), maxClients)
	for _, client := range clients[kept:] {
		others = append(others, client.Hours...)
	}
	return slices.Clone(clients[:kept]), others
}

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
		return nil, fmt.Errorf("the API server's metrics are larger than %d bytes, or %s is larger than %d", maxMetrics, deprecatedMetric,
			maxKept)
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
