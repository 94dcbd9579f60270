// Command preflight answers for the etcd operator: can etcd spare a member, and has it space?
package main

import preflight "github.com/openshift/update-preflight/preflight-sdk"

func main() {
	preflight.Main(
		preflight.Check{Name: "EtcdMembers", Description: "All members of etcd are healthy.", Timeout: timeout, Run: members},
		preflight.Check{Name: "EtcdSpace", Description: "The database of etcd is well below its quota.", Timeout: timeout, Run: space},
	)
}
