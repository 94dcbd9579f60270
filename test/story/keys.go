package story

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
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

// WriteKeys writes a key for each cluster of the fleet to a directory that it creates: the private one as NAME.pem,
// and the public one as ID.pub.
func WriteKeys(directory string) error {
	if err := os.Mkdir(directory, 0o750); err != nil {
		return err
	}
	for _, name := range FleetClusters() {
		private, err := newKey(filepath.Join(directory, name+".pem"))
		if err != nil {
			return err
		}
		der, err := x509.MarshalPKIXPublicKey(private.Public())
		if err != nil {
			return err
		}
		public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		if err := os.WriteFile(filepath.Join(directory, string(clusterID(name))+".pub"), public, 0o600); err != nil {
			return err
		}
	}
	return nil
}
