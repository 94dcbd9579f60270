// Package roster answers: which clusters does a fleet have, and how is each reached?
//
// [Contexts], [Kubeconfigs] and [Archives] list the members named by files on this machine, [Hive] and [Hosted] the
// members named by objects of a cluster; [Distinct] drops duplicates. A member that cannot be reached is still a
// member: the error of its Open, a [Failure], becomes its row.
package roster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/catalog"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/fleet"
	"github.com/openshift/update-preflight/signature/localfile"
)

// MaxMembers bounds the members of one source.
const MaxMembers = 5000

// Connect creates the clients of a cluster; it sends no request.
type Connect func(*rest.Config) (*cluster.Cluster, error)

// Connection is a member that was reached.
type Connection struct {
	Cluster *cluster.Cluster
	Estate  hosted.Estate

	answers *answers
}

// SecretRef names a Secret of the cluster whose objects name the members.
type SecretRef struct{ Namespace, Name string }

// Member is one cluster of a fleet.
type Member struct {
	Cluster fleet.Cluster
	// State is the state of a member that is not read, with the Message; empty for a member that is read.
	State   fleet.State
	Message string
	// Archived is true for an archive: no checks run there, and reading it takes memory.
	Archived bool
	// Flags select the member in a command for one cluster, as a name and its value; none if no flag does.
	Flags []string
	// Secret is the Secret with the kubeconfig that Flags name, as a file that does not exist yet; empty for none.
	Secret SecretRef

	// server is equal for members that are one API server; empty where that is unknown.
	server string
	// known differs for members of one name that are several clusters: it is the object that names it, or the
	// certificate authority of its API server.
	known string
	// content returns the current content of an archive's files; nil for a live cluster.
	content func() string
	open    func(context.Context) (Connection, error)
	// others are members of the same API server, which may have other credentials.
	others []Member
}

// Open reaches the member. It is called once.
func (m Member) Open(ctx context.Context) (Connection, error) { return m.open(ctx) }

// Ways are the member, followed by other members with the same API server. They are tried if the API server rejects the
// credentials of the member.
func (m Member) Ways() []Member { return append([]Member{m}, m.others...) }

// Origin is equal for the same member in another survey: its source, the object of a cluster that lists it, and its API
// server.
func (m Member) Origin() string {
	return fmt.Sprintf("%q %q %q %q", m.Cluster.Source, m.Cluster.Name, m.server, m.known)
}

// Identity is the Origin with everything else on which an answer about the member depends: its ID and labels in its
// object, and the files of an archive, by size and modification time.
func (m Member) Identity() string {
	text := fmt.Sprintf("%s %q %q", m.Origin(), m.Cluster.ID, m.Cluster.Labels)
	if m.content != nil {
		text += " " + m.content()
	}
	return text
}

// failed is a member whose configuration cannot be used.
func failed(of fleet.Cluster, cause *Failure) Member {
	return Member{Cluster: of, open: func(context.Context) (Connection, error) { return Connection{}, cause }}
}

// direct is a member that is reached by a configuration.
func direct(of fleet.Cluster, config *rest.Config, connect Connect) Member {
	return Member{Cluster: of, server: serverOf(config), known: authorityOf(config), open: func(context.Context) (Connection, error) {
		reached, err := observed(config, connect)
		if err != nil {
			return Connection{}, failure("KubeconfigInvalid", err)
		}
		return reached, nil
	}}
}

// serverOf identifies the API server: by its URL, and by what selects one behind that.
func serverOf(config *rest.Config) string {
	server := strings.TrimSuffix(config.Host, "/") + " " + config.ServerName
	address, err := url.Parse(config.Host)
	if err != nil || config.Proxy == nil {
		return server
	}
	through, err := config.Proxy(&http.Request{URL: address})
	if err == nil && through != nil {
		server += " " + through.String()
	}
	return server
}

// maxAuthority bounds the file of a certificate authority, in bytes.
const maxAuthority = 1 << 20

// authorityOf returns a digest of the certificate authority that the API server must have: behind one URL, such as a
// tunnel, another cluster has a different one. It is empty if the configuration names none.
func authorityOf(config *rest.Config) string {
	data := config.CAData
	if len(data) == 0 { // the connection reports a file that cannot be read
		if file, err := localfile.OpenRegular(config.CAFile); err == nil {
			data, _ = localfile.ReadAll(file, maxAuthority)
		}
	}
	if len(data) == 0 {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Distinct are the members without those whose API server an earlier one has, and a notice for
// each of these. The earlier one has them among its Ways.
func Distinct(members []Member) (kept []Member, notices []string) {
	first := map[string]int{}
	for _, member := range members {
		at, known := first[member.server]
		if known && member.server != "" {
			kept[at].others = append(kept[at].others, member)
			notices = append(notices, fmt.Sprintf("%s has the API server of %s: it is read once", describe(member.Cluster),
				describe(kept[at].Cluster)))
			continue
		}
		first[member.server] = len(kept)
		kept = append(kept, member)
	}
	return kept, notices
}

// describe is a cluster in a notice.
func describe(of fleet.Cluster) string {
	return fmt.Sprintf("%s (%s)", words.Line(of.Name, maxQuoted), words.Line(of.Source, maxQuoted))
}

// HostedNeeds are the permissions to list the hosted clusters of a management cluster.
func HostedNeeds() access.Needs {
	return access.Needs{Required: []access.Request{{Verb: "list", Group: hypershift.Group, Resource: "hostedclusters"}}}
}

// Hosted are the hosted clusters (HyperShift) of a management cluster, each with the estate of the
// management cluster. An *input.Error is about a cluster without HyperShift.
func Hosted(ctx context.Context, management *cluster.Cluster, connect Connect) ([]Member, error) {
	objects, err := listAll(ctx, management, hypershift.GroupVersion().WithResource("hostedclusters"))
	if err != nil {
		return nil, err
	}
	members := make([]Member, 0, len(objects))
	for i := range objects {
		object := &objects[i]
		of := memberOf(object, "HostedCluster")
		if object.GetDeletionTimestamp() != nil {
			members = append(members, Member{Cluster: of, State: fleet.NotInstalled, Message: "its HostedCluster is being deleted"})
			continue
		}
		namespace, name := object.GetNamespace(), object.GetName()
		of.ID, _, _ = unstructured.NestedString(object.Object, "spec", "clusterID") // empty where it is none
		members = append(members, Member{
			Cluster: of, known: objectOf(management, object),
			Flags: []string{"hosted-cluster", namespace + "/" + name}, open: func(ctx context.Context) (Connection, error) {
				reached, estate, err := hosted.Reach(ctx, management, hosted.Selection{Namespace: namespace, Name: name}, connect)
				return Connection{Cluster: reached, Estate: estate}, err
			},
		})
	}
	return members, nil
}

// Failure is why a member cannot be reached, with what to do about it.
type Failure struct {
	Err error
	// Reason is one word in CamelCase, such as KubeconfigInvalid.
	Reason string
	// Remedy is an imperative sentence.
	Remedy string
}

func (f *Failure) Error() string { return f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }

var explained = catalog.Reasons("A cluster of the fleet cannot be reached.", `
ArchiveUnreadable | The file is not an archive, or is damaged. | Gather the archive again, or exclude it.
ClusterDeploymentInvalid | The Hive ClusterDeployment does not name a Secret with a kubeconfig. | Correct the ClusterDeployment: its
	spec.clusterMetadata.adminKubeconfigSecretRef must name the Secret with the kubeconfig of the cluster.
KubeconfigForbidden | The user may not get the Secret with the kubeconfig of the cluster. | Ask an administrator of the cluster with
	the ClusterDeployments to permit you to get the Secret: apply the role that "auth run --hive" prints.
KubeconfigInvalid | The kubeconfig cannot be read, or has no usable context. | Correct the kubeconfig of the cluster, or exclude the
	cluster.
KubeconfigMissing | The Secret with the kubeconfig of the cluster does not exist. | Create the Secret again with the cluster's admin
	kubeconfig, or correct its name in the ClusterDeployment.
OtherCluster | The kubeconfig connects to a cluster with a different ID than the one recorded by Hive. | Correct the Secret with the
	admin kubeconfig, or spec.clusterMetadata.clusterID of the ClusterDeployment.`)

func failure(reason string, err error) *Failure {
	return &Failure{Err: err, Reason: reason, Remedy: explained[reason].Remedy}
}

// answers has the last response of an API server that rejects or fails what it is asked.
type answers struct {
	mutex sync.Mutex
	last  int
}

// observed connects to a cluster whose responses are observed.
func observed(config *rest.Config, connect Connect) (Connection, error) {
	seen := &answers{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &observer{next: next, seen: seen} })
	reached, err := connect(config)
	return Connection{Cluster: reached, answers: seen}, err
}

// Rejecting is the HTTP status of the API server's last answer, if it was 429 or a server failure; 0 otherwise.
func (c Connection) Rejecting() int {
	if c.answers == nil {
		return 0
	}
	c.answers.mutex.Lock()
	defer c.answers.mutex.Unlock()
	return c.answers.last
}

type observer struct {
	next http.RoundTripper
	seen *answers
}

func (o *observer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	status := response.StatusCode
	if status != http.StatusTooManyRequests && status < http.StatusInternalServerError {
		status = 0
	}
	o.seen.mutex.Lock()
	o.seen.last = status
	o.seen.mutex.Unlock()
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport behind the observer.
func (o *observer) WrappedRoundTripper() http.RoundTripper { return o.next }
