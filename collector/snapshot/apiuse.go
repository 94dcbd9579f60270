package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
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
)

// APIUse is the use of an API that a release of Kubernetes removes.
type APIUse struct {
	// Name is resource.version.group, or resource.version.
	Name string
	// RemovedInRelease is the release of Kubernetes, "1.32", that removes it.
	RemovedInRelease string
	// Requests are those of the last 24 hours.
	Requests int64
	// Clients are those with the most requests, sorted by them; the API server does not
	// keep all.
	Clients []APIClient
}

// APIClient is one program that uses an API.
type APIClient struct {
	User, Agent string
	// Requests are those of the last 24 hours.
	Requests int64
}

// APIUses are the APIs that a release removes, used or not, sorted by name, according
// to the APIRequestCounts.
func (c *Cluster) APIUses(ctx context.Context) ([]APIUse, error) {
	return once(c, "apiUses", func() ([]APIUse, error) {
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
				uses = append(uses, useOf(&count))
			}
			return nil
		})
		return uses, err
	})
}

// useOf adds up the hours, which include the current one.
func useOf(count *apiserverv1.APIRequestCount) APIUse {
	hours := count.Status.Last24h
	if len(hours) == 0 {
		hours = []apiserverv1.PerResourceAPIRequestLog{count.Status.CurrentHour}
	}
	var total int64
	requests := map[APIClient]int64{}
	for _, hour := range hours {
		total += hour.RequestCount
		for _, node := range hour.ByNode {
			for _, user := range node.ByUser {
				requests[APIClient{User: user.UserName, Agent: user.UserAgent}] += user.RequestCount
			}
		}
	}
	use := APIUse{
		Name: count.Name, RemovedInRelease: count.Status.RemovedInRelease, Requests: max(count.Status.RequestCount, total),
	}
	for client, requests := range requests {
		client.Requests = requests
		use.Clients = append(use.Clients, client)
	}
	slices.SortFunc(use.Clients, func(a, b APIClient) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.User, b.User), cmp.Compare(a.Agent, b.Agent))
	})
	use.Clients = slices.Clip(use.Clients[:min(len(use.Clients), maxAPIClients)])
	return use
}
