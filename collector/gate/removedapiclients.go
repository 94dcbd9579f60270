package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	// maxNamedClients bounds the clients of one API that a message names.
	maxNamedClients = 5
	// maxOwned bounds the service accounts whose workloads are read.
	maxOwned = 50
	// maxWorkloads bounds the workloads of one service account that a message names.
	maxWorkloads = 3
	// ownersTimeout bounds the reading of workloads; no outcome depends on it.
	ownersTimeout = 10 * time.Second
	// maxClientName bounds a name in a message, in bytes.
	maxClientName = 100
)

// clients are those of an API, without Kubernetes' own controllers.
type clients struct {
	// named are sorted by their last hour of use, the latest first, and then by their
	// requests.
	named []snapshot.APIClient
	// unnamed counts the requests of clients that the cluster does not name.
	unnamed int64
	owners  owners
}

// ownControllers read every API, so their requests do not indicate use (the
// OpenShift documentation recommends to ignore them).
func ownControllers() []string {
	return []string{
		"system:serviceaccount:kube-system:generic-garbage-collector",
		"system:serviceaccount:kube-system:namespace-controller",
		"system:kube-controller-manager",
		"system:cluster-policy-controller",
	}
}

func clientsOf(use snapshot.APIUse) clients {
	found := clients{unnamed: use.Requests}
	for _, client := range use.Clients {
		found.unnamed -= client.Requests
		if client.Requests > 0 && !slices.Contains(ownControllers(), client.User) {
			found.named = append(found.named, client)
		}
	}
	return found
}

func (c clients) any() bool { return len(c.named) > 0 || c.unnamed > 0 }

// first are the clients that a message names.
func (c clients) first() []snapshot.APIClient { return c.named[:min(len(c.named), maxNamedClients)] }

// String names the first clients. Clients are empty where the API server's metrics
// measured the use.
func (c clients) String() string {
	var texts []string
	for _, client := range c.first() {
		texts = append(texts, c.describe(client))
	}
	if more := len(c.named) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more clients", more))
	}
	if c.unnamed > 0 {
		texts = append(texts, fmt.Sprintf("unnamed clients: %d requests", c.unnamed))
	}
	if len(texts) == 0 {
		return "the API server's metrics do not name the clients"
	}
	return "by " + strings.Join(texts, "; ")
}

// describe names a client, its requests, their verbs, the last hour with a request and
// its workloads.
func (c clients) describe(client snapshot.APIClient) string {
	text := fmt.Sprintf("%s with %q: %d requests", words.Line(client.User, maxClientName), words.Line(client.Agent, maxClientName), client.Requests)
	if len(client.Verbs) > 0 {
		text += " (" + verbsOf(client.Verbs) + ")"
	}
	if !client.LastUse.IsZero() {
		text += ", last used " + client.LastUse.Format("2006-01-02 15:04") + client.LastUse.Add(time.Hour-time.Minute).Format("-15:04 MST")
	}
	if workloads := c.owners[client.User]; workloads != "" {
		text += ", from " + workloads
	}
	return text
}

// verbsOf joins verbs, each cut to the length of a verb of Kubernetes.
func verbsOf(verbs []string) string {
	const length = 20
	var texts []string
	for _, verb := range verbs {
		texts = append(texts, words.Line(verb, length))
	}
	return strings.Join(texts, ", ")
}

// owners are descriptions of the workloads of service accounts, by user name. One that
// is not known has none.
type owners map[string]string

// readOwners reads the workloads of the service accounts that the findings name, those
// of failures first. An account whose pods cannot be listed is omitted.
func readOwners(ctx context.Context, cluster *snapshot.Cluster, inUse []removal) owners {
	ctx, cancel := context.WithTimeout(ctx, ownersTimeout)
	defer cancel()
	found := owners{}
	for _, user := range accountsOf(inUse) {
		namespace, account, _ := serviceAccount(user)
		if workloads, err := cluster.WorkloadsOf(ctx, namespace, account); err == nil {
			found[user] = describeWorkloads(namespace, workloads)
		}
	}
	return found
}

// accountsOf are the users of the first clients that are service accounts, at most
// maxOwned.
func accountsOf(inUse []removal) []string {
	failing := func(api removal) bool { return api.outcome == preflight.Fail }
	rest := slices.DeleteFunc(slices.Clone(inUse), failing)
	failures := slices.DeleteFunc(slices.Clone(inUse), func(api removal) bool { return !failing(api) })
	var users []string
	for _, api := range slices.Concat(failures, rest) {
		for _, client := range api.clients.first() {
			if _, _, ok := serviceAccount(client.User); ok && len(users) < maxOwned && !slices.Contains(users, client.User) {
				users = append(users, client.User)
			}
		}
	}
	return users
}

// serviceAccount parses the user name of a service account.
func serviceAccount(user string) (namespace, account string, ok bool) {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	namespace, account, _ = strings.Cut(rest, ":")
	valid := len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(account)) == 0
	return namespace, account, valid
}

// describeWorkloads names the first workloads, and is empty without any.
func describeWorkloads(namespace string, workloads []snapshot.Workload) string {
	var texts []string
	for _, workload := range workloads[:min(len(workloads), maxWorkloads)] {
		text := words.Line(workload.Kind, maxClientName) + " " + namespace + "/" + words.Line(workload.Name, maxClientName)
		if workload.Installation != "" {
			text += " (" + workload.Installer + " " + words.Line(workload.Installation, maxClientName) + ")"
		}
		texts = append(texts, text)
	}
	return words.ListOf(texts, len(workloads))
}
