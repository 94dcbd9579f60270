package removedapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/apiuse"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// maxNamedClients bounds the clients of one API that a message names.
const maxNamedClients = 5

// clients are the clients of an API, without Kubernetes' own controllers.
type clients struct {
	// named are sorted by their last hour of use, the latest first, and then by their requests.
	named []apiuse.Client
	// unnamed counts the requests of clients that the cluster does not name.
	unnamed int64
	// reported and unnamedHours are copied from [snapshot.APIUse].
	reported, unnamedHours []time.Time
	owners                 owners
	// writers are the field managers of stored objects.
	writers []snapshot.Writer
}

// isOwnController reports whether a client is one of Kubernetes' own controllers. During the
// bootstrap of a cluster, which is in the counts for a day, they act as system:admin; the alert
// APIRemovedInNextReleaseInUse of the API server leaves them out by their program.
func isOwnController(client apiuse.Client) bool {
	if slices.Contains(ownControllers(), client.User) {
		return true
	}
	program, _, _ := strings.Cut(client.Agent, "/")
	return client.User == "system:admin" && slices.Contains([]string{"kube-controller-manager", "cluster-policy-controller"}, program)
}

// ownControllers are the users of Kubernetes' own controllers. They read every API, so their
// requests do not indicate use (the OpenShift documentation recommends to ignore them).
func ownControllers() []string {
	return []string{
		"system:serviceaccount:kube-system:generic-garbage-collector",
		"system:serviceaccount:kube-system:namespace-controller",
		"system:kube-controller-manager",
		"system:cluster-policy-controller",
	}
}

func clientsOf(use apiuse.Use) clients {
	found := clients{unnamed: use.Requests, reported: use.Reported, unnamedHours: use.UnnamedHours}
	for _, client := range use.Clients {
		found.unnamed -= client.Requests
		if client.Requests > 0 && !isOwnController(client) {
			found.named = append(found.named, client)
		}
	}
	return found
}

func (c clients) any() bool { return len(c.named) > 0 || c.unnamed > 0 }

func (c clients) first() []apiuse.Client { return c.named[:min(len(c.named), maxNamedClients)] }

// String names the first clients. Clients are empty where the API server's metrics measured the use.
func (c clients) String() string {
	var texts []string
	for _, client := range c.first() {
		texts = append(texts, c.describe(client))
	}
	if more := len(c.named) - len(texts); more > 0 {
		texts = append(texts, words.Count(more, "more client"))
	}
	if c.unnamed > 0 {
		texts = append(texts, "unnamed clients: "+words.Count(c.unnamed, "request"))
	}
	if len(texts) == 0 {
		return "the API server's metrics do not name the clients"
	}
	if len(c.writers) > 0 {
		texts = append(texts, "stored objects were written with it by "+describeWriters(c.writers))
	}
	return "by " + strings.Join(texts, "; ")
}

// describe names a client, its requests, their verbs, the last hour with a request and its workloads.
func (c clients) describe(client apiuse.Client) string {
	text := fmt.Sprintf("%s with %q: %s", words.Line(client.User, maxClientName), words.Line(client.Agent, maxClientName), words.Count(client.Requests, "request"))
	if len(client.Verbs) > 0 {
		text += " (" + verbsOf(client.Verbs) + ")"
	}
	if !client.LastUse.IsZero() {
		text += ", last used " + client.LastUse.Format("2006-01-02 15:04") + client.LastUse.Add(time.Hour-time.Minute).Format("-15:04 MST")
	}
	if workloads := c.owners[client.User].String(); workloads != "" {
		text += ", from " + workloads
	}
	return text
}

func verbsOf(verbs []string) string {
	const length = 20
	var texts []string
	for _, verb := range verbs {
		texts = append(texts, words.Line(verb, length))
	}
	return strings.Join(texts, ", ")
}

// maxNamedWriters bounds the field managers that a message names.
const maxNamedWriters = 3

// replaced are the APIs that replace those which Kubernetes removes from 1.32 on and whose
// objects are stored, with metadata that is not confidential.
func replaced() []schema.GroupVersionResource {
	flow, admission := flowcontrolv1.SchemeGroupVersion, admissionregistrationv1.SchemeGroupVersion
	return []schema.GroupVersionResource{
		flow.WithResource("flowschemas"), flow.WithResource("prioritylevelconfigurations"),
		admission.WithResource("validatingadmissionpolicies"), admission.WithResource("validatingadmissionpolicybindings"),
	}
}

func readsReplaced() []access.Request {
	var reads []access.Request
	for _, resource := range replaced() {
		reads = append(reads, check.List(resource.Group, resource.Resource))
	}
	return reads
}

// readWriters are the field managers that wrote objects of the API, resource.version.group.
// Where they cannot be read, there are none.
func readWriters(ctx context.Context, cluster *snapshot.Cluster, api string) []snapshot.Writer {
	for _, resource := range replaced() {
		rest, ok := strings.CutPrefix(api, resource.Resource+".")
		version, group, _ := strings.Cut(rest, ".")
		if !ok || group != resource.Group || version == resource.Version {
			continue
		}
		if writers, err := cluster.WritersOf(ctx, resource, version); err == nil {
			return writers
		}
	}
	return nil
}

func describeWriters(writers []snapshot.Writer) string {
	var texts []string
	for _, writer := range writers[:min(len(writers), maxNamedWriters)] {
		texts = append(texts, fmt.Sprintf("field manager %q (%s)", words.Line(writer.Manager, maxClientName), words.Count(writer.Objects, "object")))
	}
	return words.ListOf(texts, len(writers))
}
