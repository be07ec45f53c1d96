"""Check Pleiad with the official Java client: `python -m conformance.java.run`.

Maven builds the program of this folder into build/java; it runs over plain HTTP in gateway mode, and over HTTPS in
direct mode, the default of the client.
"""

import sys
from pathlib import Path

from conformance.client_program import (
    DIRECT,
    GATEWAY,
    ClientProgram,
    check_client,
    require_tools,
    run_build_step,
)

SOURCE_DIR = Path(__file__).resolve().parent


def build(directory: Path) -> list[str]:
    """Compile the program, and put the client and what it needs beside it."""
    require_tools("Java", "java", "mvn")
    run_build_step(["mvn", "--batch-mode", "--quiet", f"-Dcheck.build={directory}", "compile"], SOURCE_DIR)
    classpath = f"{directory / 'classes'}:{directory / 'lib'}/*"
    return [
        "java",
        # The client speaks plain HTTP to an endpoint, and takes a certificate of nobody, only where it is told to.
        "-DCOSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED=true",
        "-DCOSMOS.EMULATOR_SERVER_CERTIFICATE_VALIDATION_DISABLED=true",
        "-DCOSMOS.EMULATOR_HOST=127.0.0.1",
        "-Dio.netty.tryReflectionSetAccessible=false",
        "-cp",
        classpath,
        "pleiad.check.Main",
    ]


PROGRAM = ClientProgram(
    name="java",
    language="Java",
    sections="catalog,items,ids,patch,batch,bulk,queries,paging,changefeed,processor,scripts,access,splits",
    left_out="several regions; client-side encryption",
    modes=(GATEWAY, DIRECT),
    build=build,
)

if __name__ == "__main__":
    sys.exit(check_client(PROGRAM))
