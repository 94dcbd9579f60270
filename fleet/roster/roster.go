// Package roster answers: which clusters does a fleet have, and how is each reached?
//
// [Contexts], [Kubeconfigs] and [Archives] list the members that files on this machine name,
// [Hive] and [Hosted] those that objects of a cluster name; [Distinct] leaves out what is named
// twice. A member that cannot be reached is a member: the error of its Open is its row.
package roster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/fleet"
)

// MaxMembers bounds the members of one source.
const MaxMembers = 5000

// Connect makes the clients of a cluster; it sends no request.
type Connect func(*rest.Config) (*cluster.Cluster, error)

// Connection is a member that was reached.
type Connection struct {
	Cluster *cluster.Cluster
	// Hosted is the side of the management cluster; nil for a cluster that is not hosted.
	Hosted *hosted.ControlPlane
}

// Member is one cluster of a fleet.
type Member struct {
	Cluster fleet.Cluster
	// State is that of a member which is not asked, with the Message; empty for one that is.
	State   fleet.State
	Message string
	// Archived is true for an archive: no checks are run there, and reading it takes memory.
	Archived bool
	// Flags select the member in a command for one cluster, as a name and its value; none
	// where no flag does.
	Flags []string

	// server is equal for members that are one API server; empty where that is unknown.
	server string
	open   func(context.Context) (Connection, error)
}

// Open reaches the member. It is called once.
func (m Member) Open(ctx context.Context) (Connection, error) { return m.open(ctx) }

// Identity is equal for the same member in another survey: where it is from, and by which API server
// it is reached.
func (m Member) Identity() string { return m.Cluster.Source + "\n" + m.Cluster.Name + "\n" + m.server }

// failed is a member whose configuration cannot be used.
func failed(of fleet.Cluster, cause error) Member {
	return Member{Cluster: of, open: func(context.Context) (Connection, error) { return Connection{}, cause }}
}

// direct is a member that is reached by a configuration.
func direct(of fleet.Cluster, config *rest.Config, connect Connect) Member {
	return Member{Cluster: of, server: serverOf(config), open: func(context.Context) (Connection, error) {
		reached, err := connect(config)
		return Connection{Cluster: reached}, err
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

// Distinct are the members without those whose API server an earlier one has, and a notice for
// each of these.
func Distinct(members []Member) (kept []Member, notices []string) {
	first := map[string]fleet.Cluster{}
	for _, member := range members {
		earlier, known := first[member.server]
		if known && member.server != "" {
			notices = append(notices, fmt.Sprintf("%s (%s) has the API server of %s (%s): it is asked once", member.Cluster.Name, member.Cluster.Source, earlier.Name, earlier.Source))
			continue
		}
		first[member.server] = member.Cluster
		kept = append(kept, member)
	}
	return kept, notices
}
