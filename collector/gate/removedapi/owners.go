package removedapi

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// maxWorkloads bounds the workloads of one service account that a message names.
	maxWorkloads = 3
	// ownersTimeout bounds the reading of workloads. Clients whose workloads are not read
	// are not named with them, and are not known to be fixed.
	ownersTimeout = 10 * time.Second
)

// maxClientName bounds a name in a message, in bytes.
const maxClientName = 100

type owners map[string]owner

type owner struct {
	namespace string
	// workloads have pods now.
	workloads []snapshot.Workload
	// templates use the account, with pods or without.
	templates []snapshot.PodOwner
	// unread is true where the workloads, or the templates, could not be read.
	unread bool
}

func readOwners(ctx context.Context, cluster *snapshot.Cluster, users []string) owners {
	ctx, cancel := context.WithTimeout(ctx, ownersTimeout)
	defer cancel()
	found := owners{}
	for _, user := range users {
		namespace, account, _ := serviceAccount(user)
		ctx, missing := gap.Watch(ctx)
		workloads, err := cluster.WorkloadsOf(ctx, namespace, account)
		templates, unread := cluster.PodOwners(ctx, namespace, account)
		if err != nil {
			workloads = nil // the workloads of the first pages look like all
		}
		found[user] = owner{namespace: namespace, workloads: workloads, templates: templates, unread: err != nil || unread != nil || missing.Err() != nil}
	}
	return found
}

func serviceAccount(user string) (namespace, account string, ok bool) {
	rest, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return "", "", false
	}
	namespace, account, _ = strings.Cut(rest, ":")
	valid := len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(account)) == 0
	return namespace, account, valid
}

// String names the first workloads, and is empty without any.
func (o owner) String() string {
	var texts []string
	for _, workload := range o.workloads[:min(len(o.workloads), maxWorkloads)] {
		text := o.name(workload.Kind, workload.Name)
		if workload.Installation != "" {
			text += " (" + workload.Installer + " " + words.Line(workload.Installation, maxClientName) + ")"
		}
		texts = append(texts, text)
	}
	return words.ListOf(texts, len(o.workloads))
}

func (o owner) name(kind, name string) string {
	return words.Line(kind, maxClientName) + " " + o.namespace + "/" + words.Line(name, maxClientName)
}
