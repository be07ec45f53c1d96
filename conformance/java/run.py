"""Check Pleiad with the official Java client: `python -m conformance.java.run`.

Maven builds the program of this folder into build/java; it runs over plain HTTP, in gateway mode.
"""

import sys
from pathlib import Path

from conformance.client_program import ClientProgram, check_client, require_tools, run_build_step

SOURCE_DIR = Path(__file__).resolve().parent


def build(directory: Path) -> list[str]:
    """Compile the program, and put the client and what it needs beside it."""
    require_tools("Java", "java", "mvn")
    run_build_step(["mvn", "--batch-mode", "--quiet", f"-Dcheck.build={directory}", "compile"], SOURCE_DIR)
    classpath = f"{directory / 'classes'}:{directory / 'lib'}/*"
    # The client speaks plain HTTP to an endpoint only where this property allows it.
    allowed = "-DCOSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED=true"
    return [
        "java",
        allowed,
        "-Dio.netty.tryReflectionSetAccessible=false",
        "-cp",
        classpath,
        "pleiad.check.Main",
    ]


PROGRAM = ClientProgram(
    name="java",
    language="Java",
    sections="catalog,items,ids,patch,batch,bulk,queries,paging,changefeed,processor,scripts,access,splits",
    left_out="direct mode, which this server does not speak; several regions; client-side encryption",
    build=build,
)

if __name__ == "__main__":
    sys.exit(check_client(PROGRAM))
