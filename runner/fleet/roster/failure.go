package roster

import (
	"net/http"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
)

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

var explained = finding.Explain("A cluster of the fleet cannot be reached.", `
ArchiveUnreadable | The file is no archive, or it is damaged. | Gather the archive again, or leave it out.
ClusterDeploymentInvalid | The ClusterDeployment of Hive names no Secret with a kubeconfig. | Correct the ClusterDeployment: its
	spec.clusterMetadata.adminKubeconfigSecretRef must name the Secret with the kubeconfig of the cluster.
KubeconfigForbidden | The user may not get the Secret with the kubeconfig of the cluster. | Have an administrator of the cluster with the
	ClusterDeployments permit you to get the Secret: apply the role that "auth run --hive" prints.
KubeconfigInvalid | The kubeconfig cannot be read, or has no usable context. | Correct the kubeconfig of the cluster, or leave the cluster out.
KubeconfigMissing | The Secret with the kubeconfig of the cluster does not exist. | Create the Secret again with the admin kubeconfig of the
	cluster, or correct the name of it in the ClusterDeployment.
OtherCluster | The kubeconfig reaches a cluster with another ID than Hive knows. | Correct the Secret with the admin kubeconfig, or
	spec.clusterMetadata.clusterID of the ClusterDeployment.`)

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

// Rejecting is the HTTP status with which the API server has answered the last request, where that is
// 429 or one of a server that fails; 0 otherwise.
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
