package story

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
)

// newKey writes a new private key, and returns it.
func newKey(path string) (*ecdsa.PrivateKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	return private, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// clusterID is that of a cluster of the fleet.
func clusterID(name string) configv1.ClusterID {
	return configv1.ClusterID(fmt.Sprintf("00000000-0000-4000-8000-%012d", slices.Index(FleetClusters(), name)+1))
}
