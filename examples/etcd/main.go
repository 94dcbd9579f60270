// Command preflight reports for the etcd operator whether etcd tolerates the loss of a
// member, and whether its database has space.
package main

import preflight "github.com/openshift/update-preflight/preflight-sdk"

func main() {
	preflight.Main(
		preflight.Check{
			Name:        "EtcdMembers",
			Description: "All members of etcd are healthy.",
			Timeout:     timeout,
			Rules: []preflight.Rule{
				{
					APIGroups: []string{"operator.openshift.io"}, Resources: []string{"etcds"}, ResourceNames: []string{"cluster"},
					Verbs: []string{"get"},
				},
			},
			Run: members,
		},
		preflight.Check{
			Name:        "EtcdSpace",
			Description: "The database of etcd is well below its quota.",
			Timeout:     timeout,
			// A rule cannot grant /metrics: the manifest is written by hand.
			Rules: []preflight.Rule{
				{Namespace: "openshift-etcd", APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
			},
			Run: space,
		},
	)
}
