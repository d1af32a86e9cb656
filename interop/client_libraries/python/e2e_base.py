"""kubernetes.e2e_test.base of the Python client, which its releases on PyPI do not have: where the tests find their cluster."""
import os

from kubernetes.client.configuration import Configuration
from kubernetes.config import kube_config


def get_e2e_configuration():
    configuration = Configuration()
    kube_config.load_kube_config(os.environ["KUBECONFIG"], client_configuration=configuration)
    return configuration
