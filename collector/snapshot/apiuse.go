package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// apiRequestCountPage is the size of a page of APIRequestCounts, each of which has
	// the requests of a day by hour, node, user and verb.
	apiRequestCountPage = 100
	// maxAPIClients bounds the clients of one API that are kept.
	maxAPIClients = 100
	// maxAPIVerbs bounds the verbs of one client that are kept.
	maxAPIVerbs = 10
)

// APIUse is the use of an API that a release of Kubernetes removes.
type APIUse struct {
	// Name is resource.version.group, or resource.version.
	Name string
	// RemovedInRelease is the release of Kubernetes, "1.32", that removes it.
	RemovedInRelease string
	// Requests are those of the last 24 hours.
	Requests int64
	// Reported are the starts of the hours for which every API server reported, sorted. An
	// API server that reports any hour reports all hours in which it runs, so the requests
	// of other hours are incomplete.
	Reported []time.Time
	// UnnamedHours are the starts of the hours with requests of clients that are not
	// among Clients, sorted. A zero time is an unknown hour.
	UnnamedHours []time.Time
	// Clients are those with the latest use, and of these the ones with the most
	// requests, in this order, at most 100; the API server does not keep all.
	Clients []APIClient
}

// APIClient is one program that uses an API.
type APIClient struct {
	User, Agent string
	// Requests are those of the last 24 hours.
	Requests int64
	// Verbs are those of the requests, sorted, at most 10.
	Verbs []string
	// LastUse is the start of the last hour with a request, in UTC; requests are counted
	// by the hour. It is zero where the hour is unknown.
	LastUse time.Time
	// Hours are the starts of all hours with a request, sorted, at most 26. A zero time is
	// an unknown hour.
	Hours []time.Time
}

// APIUses are the APIs that a release removes, used or not, sorted by name, according
// to the APIRequestCounts. The hours of use are those of the day before now.
func (c *Cluster) APIUses(ctx context.Context, now time.Time) ([]APIUse, error) {
	return once(ctx, c, "apiUses", func(ctx context.Context) ([]APIUse, error) {
		resource := apiserverv1.GroupVersion.WithResource("apirequestcounts")
		page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.Limit = apiRequestCountPage
			return c.api.Dynamic.Resource(resource).List(ctx, options)
		}
		var uses []APIUse
		err := each(ctx, page, func(object *unstructured.Unstructured) error {
			var count apiserverv1.APIRequestCount
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &count); err != nil {
				return fmt.Errorf("the APIRequestCount %s cannot be decoded: %w", object.GetName(), err)
			}
			if count.Status.RemovedInRelease != "" {
				uses = append(uses, useOf(&count, now))
			}
			return nil
		})
		return uses, err
	})
}

// useOf adds up the hours, which include the current one.
func useOf(count *apiserverv1.APIRequestCount, now time.Time) APIUse {
	status := &count.Status
	clients := apiClients{}
	var total int64
	var unnamed []time.Time
	for index, hour := range status.Last24h {
		total += hour.RequestCount
		clients.add(hour, hourOf(index, now))
		unnamed = appendUnnamed(unnamed, hour, hourOf(index, now))
	}
	switch current := now.UTC().Truncate(time.Hour); {
	case len(status.Last24h) == 0:
		total = status.CurrentHour.RequestCount
		clients.add(status.CurrentHour, current)
		unnamed = appendUnnamed(unnamed, status.CurrentHour, current)
	case !copied(status, current.Hour()):
		clients.use(status.CurrentHour, current)
		unnamed = appendUnnamed(unnamed, status.CurrentHour, current)
	}
	if status.RequestCount > total {
		unnamed = append(unnamed, time.Time{})
	}
	named, dropped := clients.sorted()
	unnamed = append(unnamed, dropped...)
	return APIUse{
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

// reported are the hours that have every node of the day.
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

// hourOf is the start of the hour that status.last24h has at this index, the hour of
// the day in UTC. The API server empties the next hour in advance, so requests at that
// index are of an hour that began after now. The time is zero for an index that is no
// hour.
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

// apiClients are the clients of one API by user and agent.
type apiClients map[[2]string]*apiClient

type apiClient struct {
	requests int64
	verbs    map[string]bool
	hours    map[time.Time]bool
}

// add adds the requests of the hour that began at start.
func (c apiClients) add(hour apiserverv1.PerResourceAPIRequestLog, start time.Time) {
	for _, node := range hour.ByNode {
		for _, user := range node.ByUser {
			key := [2]string{user.UserName, user.UserAgent}
			if c[key] == nil {
				c[key] = &apiClient{verbs: map[string]bool{}, hours: map[time.Time]bool{}}
			}
			c[key].requests += user.RequestCount
		}
	}
	c.use(hour, start)
}

// use notes the verbs and the time of requests that are counted.
func (c apiClients) use(hour apiserverv1.PerResourceAPIRequestLog, start time.Time) {
	for _, node := range hour.ByNode {
		for _, user := range node.ByUser {
			if client := c[[2]string{user.UserName, user.UserAgent}]; client != nil && user.RequestCount > 0 {
				client.use(user.ByVerb, start)
			}
		}
	}
}

func (c *apiClient) use(verbs []apiserverv1.PerVerbAPIRequestCount, start time.Time) {
	c.hours[start] = true
	for _, verb := range verbs {
		if verb.RequestCount > 0 {
			c.verbs[verb.Verb] = true
		}
	}
}

// sorted are the first clients, and the hours of the others.
func (c apiClients) sorted() (first []APIClient, others []time.Time) {
	clients := make([]APIClient, 0, len(c))
	for key, client := range c {
		verbs := slices.Sorted(maps.Keys(client.verbs))
		found := APIClient{
			User: key[0], Agent: key[1], Requests: client.requests, Verbs: verbs[:min(len(verbs), maxAPIVerbs)],
			Hours: slices.SortedFunc(maps.Keys(client.hours), time.Time.Compare),
		}
		if len(found.Hours) > 0 {
			found.LastUse = found.Hours[len(found.Hours)-1]
		}
		clients = append(clients, found)
	}
	slices.SortFunc(clients, func(a, b APIClient) int {
		return cmp.Or(b.LastUse.Compare(a.LastUse), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.User, b.User), cmp.Compare(a.Agent, b.Agent))
	})
	kept := min(len(clients), maxAPIClients)
	for _, client := range clients[kept:] {
		others = append(others, client.Hours...)
	}
	return slices.Clone(clients[:kept]), others
}
