// Command program is a /bin/preflight with two checks, each with a rule of its own.
package main

import (
	"context"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

func main() {
	preflight.Main(reader("Members", "pods"), reader("Space", "secrets"))
}

func reader(name, resource string) preflight.Check {
	return preflight.Check{
		Name:  name,
		Rules: []preflight.Rule{{Namespace: "openshift-etcd", APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"list"}}},
		Run:   func(context.Context, *preflight.T) error { return nil },
	}
}
